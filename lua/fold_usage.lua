-- Folds a session's usage into the days of its agent. Folding again changes nothing.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = usage            hash uy:{cell}:<agent>
--
-- ARGV[1] = agent_id         16 bytes
-- ARGV[2] = kept             days before this one that are kept
--
-- Reply:  {'ok'}
-- Writes: HSET session; HSET, HDEL and PEXPIRE usage
--@include session_usage
--@include fold_usage
local session, usage = KEYS[1], KEYS[2]
local agent_id, kept = ARGV[1], ARGV[2]

--@block now

if redis.call('HGET', session, 'a') == agent_id then -- else it has expired, or is a tombstone
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  fold_usage(session, usage, now, kept)
end
return {'ok'}
