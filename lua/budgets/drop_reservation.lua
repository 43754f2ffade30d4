-- Drops a root session's reservation whose usage is taken. The session is among the closed ones from then on, so that no top-up
-- that was overtaken reserves for it again.
--
-- KEYS[1] = parts            hash op:{cell}:<organization>
-- KEYS[2] = looks            zset ol:{cell}:<organization>
-- KEYS[3] = open_sessions    zset oo:{cell}:<organization>
-- KEYS[4] = closed_sessions  zset os:{cell}:<organization>
--
-- ARGV[1] = session_id       16 bytes
--
-- Reply:  {'ok'}
-- Writes: HDEL parts; ZADD closed_sessions; ZREM open_sessions and looks
--@include parts
local parts, looks, open_sessions, closed_sessions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local session_id = ARGV[1]

local part = redis.call('HGET', parts, session_id)
if part and not read_part(part) then
  redis.call('HDEL', parts, '') -- goes on when Redis is full, see lua.go
  redis.call('ZADD', closed_sessions, 0, session_id)
  redis.call('ZREM', open_sessions, session_id)
  redis.call('HDEL', parts, session_id)
  redis.call('ZREM', looks, session_id)
end
return {'ok'}
