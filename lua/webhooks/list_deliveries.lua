-- Reads the deliveries that are kept of a webhook.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = webhooks      hash ow:{cell}:<organization>
-- KEYS[3] = deliveries    hash wd:{cell}:<webhook>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = webhook_id    16 bytes
--
-- Reply:  {'ok', now, kept}  in ms since 1970; an array of names and values: delivery (id as text) to record
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_webhook'}
-- Writes: nothing
local organization, webhooks, deliveries = KEYS[1], KEYS[2], KEYS[3]
local credential, webhook_id = ARGV[1], ARGV[2]

--@block now
--@block api_key
if redis.call('HEXISTS', webhooks, webhook_id) == 0 then
  return {'unknown_webhook'}
end
local kept = redis.call('HGETALL', deliveries)
return {'ok', string.format('%d', now), kept}
