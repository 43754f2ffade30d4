-- Starts the time to live of a session whose books are closed and whose usage its parent has taken.
--
-- KEYS[1] = session               hash s:{cell}:<session>
-- KEYS[2] = session_transactions  zset stx:{cell}:<session>
-- KEYS[3] = closed                zset sd:{cell}:<session>
--
-- ARGV[1] = retention             ms that it stays readable from now
--
-- Reply:  {'ok'}
-- Writes: PEXPIRE session, session_transactions and closed
local session, session_transactions, closed = KEYS[1], KEYS[2], KEYS[3]
local retention = ARGV[1]

local a, cl = unpack(redis.call('HMGET', session, 'a', 'cl'))
if a and cl and redis.call('PTTL', session) > tonumber(retention) then
  redis.call('PEXPIRE', session, retention)
  redis.call('PEXPIRE', session_transactions, retention)
  redis.call('PEXPIRE', closed, retention)
end
return {'ok'}
