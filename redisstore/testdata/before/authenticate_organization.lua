-- Checks whether an API key opens an organization, and returns what that organization is.
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
local milliseconds = time[2] / 1000
local now = time[1] * 1000 + (milliseconds - milliseconds % 1)

local organization_key, previous_key, previous_until, name, metadata, created = unpack(redis.call('HMGET', organization,
  'key', 'previous_key', 'previous_until', 'name', 'metadata', 'created'))
local in_grace = key_hash == previous_key and now < tonumber(previous_until or 0)
if key_hash ~= organization_key and not in_grace then
  return {'invalid_api_key'}
end
return {'ok', name, metadata or '', created}
