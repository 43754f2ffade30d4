-- Notes that an organization's API key is in use, if it has replaced another: from then on the one before cannot
-- rotate.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = key_hash      SHA-256 of an API key that was found good, 32 bytes
--
-- Reply:  {'ok'}
-- Writes: HSET organization, once for each key that replaced another
local organization = KEYS[1]
local key_hash = ARGV[1]

local organization_key, used_key, previous_until = unpack(redis.call('HMGET', organization, 'key', 'used_key',
  'previous_until'))
if organization_key == key_hash and used_key ~= key_hash and previous_until then
  redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', organization, 'used_key', key_hash)
end
return {'ok'}
