-- Starts the time to live of a session whose books are closed and whose usage its parent has taken, and notes that nobody keeps its
-- books any more.
--
-- KEYS[1] = session               hash s:{cell}:<session>
-- KEYS[2] = session_transactions  zset stx:{cell}:<session>
-- KEYS[3] = closed                zset sd:{cell}:<session>
--
-- ARGV[1] = retention             ms that it stays readable from now
--
-- Reply:  {'ok'}
-- Writes: HSET and PEXPIRE session; PEXPIRE session_transactions and closed
local session, session_transactions, closed = KEYS[1], KEYS[2], KEYS[3]
local retention = ARGV[1]

local a, cl, r = unpack(redis.call('HMGET', session, 'a', 'cl', 'r'))
if a and cl and string.find(r or '', 'k', 1, true) then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'r', (string.gsub(r, 'k', 'K')))
  redis.call('PEXPIRE', session, retention)
  redis.call('PEXPIRE', session_transactions, retention)
  redis.call('PEXPIRE', closed, retention)
end
return {'ok'}
