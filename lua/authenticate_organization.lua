-- Says whether an API key opens an organization, and what that organization is.
-- Lua interns strings, so == compares two pointers: its time tells nothing of the hashes.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = key_hash      SHA-256 of the API key presented, 32 bytes
--
-- Reply:  {'ok', name, metadata, created}  metadata '' for none, created in ms since 1970
--         {'invalid_api_key'}
-- Writes: nothing
local organization = KEYS[1]
local key_hash = ARGV[1]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', organization, 'key', 'previous_key', 'previous_until', 'name', 'metadata', 'created')
local in_grace = key_hash == stored[2] and now < tonumber(stored[3] or 0)
if key_hash ~= stored[1] and not in_grace then
  return {'invalid_api_key'}
end
return {'ok', stored[4], stored[5] or '', stored[6]}
