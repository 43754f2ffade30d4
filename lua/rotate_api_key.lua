-- Gives an organization a new API key. The key that asked stays valid for the grace time, not the one it replaces:
-- when the answer to a rotation was lost, the old key is the one in use, and asks again. Once its successor was used it was
-- not lost, and only that one rotates: a grace time must not let a stolen key take the organization over.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = key_hash      SHA-256 of the API key presented, 32 bytes
-- ARGV[2] = new_key_hash  SHA-256 of the API key to come, 32 bytes
-- ARGV[3] = grace         ms for which the presented key stays valid
--
-- Reply:  {'ok', previous_until}  ms since 1970 at which the presented key ends
--         {'invalid_api_key'}
--         {'successor_used'}      the key is in its grace time and the one after it in use
-- Writes: HSET organization
local organization = KEYS[1]
local key_hash, new_key_hash, grace = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', organization, 'key', 'previous_key', 'previous_until', 'used_key')
local in_grace = key_hash == stored[2] and now < tonumber(stored[3] or 0)
if key_hash ~= stored[1] and not in_grace then
  return {'invalid_api_key'}
end
if in_grace and stored[4] == stored[1] then
  return {'successor_used'}
end

local ends = now + grace
if in_grace then
  ends = math.min(ends, tonumber(stored[3])) -- it does not prolong its own time
end
local previous_until = string.format('%.0f', ends)
redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', organization, 'key', new_key_hash, 'previous_key', key_hash, 'previous_until', previous_until)
return {'ok', previous_until}
