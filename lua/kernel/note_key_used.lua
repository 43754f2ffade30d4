-- Notes that an API key is in use, and when. If it has replaced another, the one before can from then on manage no keys.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = used_key      SHA-256 of an API key that was found good (32 bytes)
--
-- Reply:  {'ok'}
-- Writes: HSET and HDEL organization
--@include read_api_keys
--@include count_bytes
--@include write_api_keys
local organization = KEYS[1]
local used_key = ARGV[1]

--@block now

local key_owner = redis.call('HGET', organization, 'k:' .. used_key)
local key = read_key(organization, key_owner and string.sub(key_owner, 2, 17) or '')
if not key or used_key ~= key.current and used_key ~= key.previous then
  return {'ok'} -- it has ended since
end
redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
if used_key == key.current and key.previous ~= '' and not key.used then
  key.used = true
  write_key(organization, key)
end
redis.call('HSET', organization, 'u:' .. key.id, string.format('%d', now))
return {'ok'}
