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
-- Writes: HDEL webhooks and progress; UNLINK pending, finished, dead, deliveries
local organization, webhooks, progress, pending, finished, dead, deliveries = unpack(KEYS)
local credential, webhook_id = ARGV[1], ARGV[2]

--@block now
--@block api_key
if redis.call('HEXISTS', webhooks, webhook_id) == 0 then
  return {'unknown_webhook'}
end
redis.call('HDEL', webhooks, webhook_id)
redis.call('HDEL', progress, webhook_id)
redis.call('UNLINK', pending)
redis.call('UNLINK', finished)
redis.call('UNLINK', dead)
redis.call('UNLINK', deliveries)
return {'ok'}
