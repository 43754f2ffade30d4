-- Removes a webhook with its deliveries.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = webhooks      hash ow:{cell}:<organization>
-- KEYS[3] = progress      hash owp:{cell}:<organization>
-- KEYS[4] = pending       zset wp:{cell}:<webhook>
-- KEYS[5] = finished      zset wf:{cell}:<webhook>
-- KEYS[6] = dead          zset wx:{cell}:<webhook>
-- KEYS[7] = deliveries    hash wd:{cell}:<webhook>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = webhook_id    16 bytes
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_webhook'}
-- Writes: HDEL webhooks and progress; HSET organization; UNLINK pending, finished, dead, deliveries
--@include count_bytes
--@include delivery_size
local organization, webhooks, progress, pending, finished, dead, deliveries = unpack(KEYS)
local credential, webhook_id = ARGV[1], ARGV[2]

--@block now
--@block api_key
local settings = redis.call('HGET', webhooks, webhook_id)
if not settings then
  return {'unknown_webhook'}
end
local bytes = 130 + #settings
local records = redis.call('HGETALL', deliveries)
for i = 2, #records, 2 do
  bytes = bytes + delivery_size(records[i])
end
redis.call('HDEL', webhooks, webhook_id)
count_bytes(organization, -bytes)
redis.call('HDEL', progress, webhook_id)
redis.call('UNLINK', pending)
redis.call('UNLINK', finished)
redis.call('UNLINK', dead)
redis.call('UNLINK', deliveries)
return {'ok'}
