-- Notes that an organization's API key is in use, if it has replaced another: the one before may not rotate any more.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = key_hash      SHA-256 of an API key that was found good, 32 bytes
--
-- Reply:  {'ok'}
-- Writes: HSET organization, once for each key that replaced another
local organization = KEYS[1]
local key_hash = ARGV[1]

local stored = redis.call('HMGET', organization, 'key', 'used_key', 'previous_until')
if stored[1] == key_hash and stored[2] ~= key_hash and stored[3] then
  redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', organization, 'used_key', key_hash)
end
return {'ok'}
