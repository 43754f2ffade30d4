-- Refuses a caller whose API key (key_hash) is not the organization's.
local organization_key, previous_key, previous_until = unpack(redis.call('HMGET', organization, 'key', 'previous_key',
  'previous_until'))
--@block refuse_api_key
