-- Refuses a caller whose API key is not the organization's, or whose role may not do this. credential is the SHA-256 of
-- the key (32 bytes) and the least role that may do this: 1 viewer, 2 operator, 3 admin.
local key_hash, required_role = string.sub(credential, 1, 32), string.sub(credential, 33)
local key_field = 'k:' .. key_hash
local organization_key, previous_key, previous_until, key_owner = unpack(redis.call('HMGET', organization, 'key', 'previous_key',
  'previous_until', key_field))
--@block refuse_api_key
