-- Starts the time to live of a closed session whose usage its parent has taken, and notes that no parent waits for that any
-- more.
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

--@read session session_agent closed_at restrictions
if session_agent and closed_at and string.find(restrictions or '', 'k', 1, true) then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'r', (string.gsub(restrictions, 'k', 'K')))
  redis.call('PEXPIRE', session, retention)
  redis.call('PEXPIRE', session_transactions, retention)
  redis.call('PEXPIRE', closed, retention)
end
return {'ok'}
