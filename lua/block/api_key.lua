-- Refuses a caller whose API key (key_hash) does not open the organization.
local organization_key, previous_key, previous_until = unpack(redis.call('HMGET', organization, 'key', 'previous_key',
  'previous_until'))
--@block refuse_api_key
