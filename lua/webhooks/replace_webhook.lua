-- Stores other settings of a webhook, if they are still those that the caller read.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = webhooks      hash ow:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = webhook_id    16 bytes
-- ARGV[3] = found         the settings that were read
-- ARGV[4] = settings      the new ones
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_webhook'}
--         {'changed_meanwhile'}       others were stored meanwhile
-- Writes: HSET webhooks and organization
--@include count_bytes
local organization, webhooks = KEYS[1], KEYS[2]
local credential, webhook_id, found, settings = unpack(ARGV)

--@block now
--@block api_key
local stored = redis.call('HGET', webhooks, webhook_id)
if not stored then
  return {'unknown_webhook'}
end
if stored ~= found and stored ~= settings then
  return {'changed_meanwhile'}
end
redis.call('HSET', webhooks, webhook_id, settings)
count_bytes(organization, #settings - #stored)
return {'ok'}
