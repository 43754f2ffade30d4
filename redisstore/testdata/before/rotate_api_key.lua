-- Replaces an organization's API key. The presented key stays valid for the grace time, not the one it replaces: when
-- the reply to a rotation was lost, the client still uses the old key and tries again. Once its successor was used, only the
-- successor rotates, so that a stolen key in its grace time cannot take the organization over.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = key_hash      SHA-256 of the API key presented, 32 bytes
-- ARGV[2] = new_key_hash  SHA-256 of the new API key, 32 bytes
-- ARGV[3] = grace         ms for which the presented key stays valid
--
-- Reply:  {'ok', previous_until}  ms since 1970 at which the presented key ends
--         {'invalid_api_key'}
--         {'successor_used'}      the key is in its grace time and the one after it in use
-- Writes: HSET organization
local organization = KEYS[1]
local key_hash, new_key_hash, grace = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local milliseconds = time[2] / 1000
local now = time[1] * 1000 + (milliseconds - milliseconds % 1)

local organization_key, previous_key, previous_until, used_key = unpack(redis.call('HMGET', organization,
  'key', 'previous_key', 'previous_until', 'used_key'))
local in_grace = key_hash == previous_key and now < tonumber(previous_until or 0)
if key_hash ~= organization_key and not in_grace then
  return {'invalid_api_key'}
end
if in_grace and used_key == organization_key then
  return {'successor_used'}
end

local ends = now + grace
if in_grace then
  ends = math.min(ends, tonumber(previous_until)) -- it does not prolong its own time
end
previous_until = string.format('%d', ends)
redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', organization, 'key', new_key_hash, 'previous_key', key_hash, 'previous_until', previous_until)
return {'ok', previous_until}
