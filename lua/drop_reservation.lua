-- Drops a root session's reservation whose usage is taken.
--
-- KEYS[1] = parts          hash op:{cell}:<organization>
-- KEYS[2] = looks          zset ol:{cell}:<organization>
--
-- ARGV[1] = session_id     16 bytes
--
-- Reply:  {'ok'}
-- Writes: HDEL parts; ZREM looks
--@include parts
local parts, looks = KEYS[1], KEYS[2]
local session_id = ARGV[1]

local part = redis.call('HGET', parts, session_id)
if part and not read_part(part) then
  redis.call('HDEL', parts, '') -- goes on when Redis is full, see lua.go
  redis.call('HDEL', parts, session_id)
  redis.call('ZREM', looks, session_id)
end
return {'ok'}
