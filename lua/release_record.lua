-- Starts the time to live of a session whose books are closed and whose usage its parent has taken, and notes that: a part that
-- is set aside for it again, by a top-up that was overtaken, comes back whole.
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

local a, cl, tk = unpack(redis.call('HMGET', session, 'a', 'cl', 'tk'))
if a and cl and not tk then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'tk', '1')
  redis.call('PEXPIRE', session, retention)
  redis.call('PEXPIRE', session_transactions, retention)
  redis.call('PEXPIRE', closed, retention)
end
return {'ok'}
