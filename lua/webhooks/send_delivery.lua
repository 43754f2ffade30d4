-- Makes a delivery due at once: a new one, or one that is kept, if its record is still the one that the caller read.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = webhooks      hash ow:{cell}:<organization>
-- KEYS[3] = pending       zset wp:{cell}:<webhook>
-- KEYS[4] = finished      zset wf:{cell}:<webhook>
-- KEYS[5] = dead          zset wx:{cell}:<webhook>
-- KEYS[6] = deliveries    hash wd:{cell}:<webhook>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = webhook_id    16 bytes
-- ARGV[3] = delivery      id as text
-- ARGV[4] = found         its record, '' for a new one
-- ARGV[5] = kept          the new record
-- ARGV[6] = most          deliveries that may wait
--
-- Reply:  {'ok', now}     in ms since 1970
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_webhook'}
--         {'changed_meanwhile'}       its record is another one by now
--         {'over_quota', quota, used, max}
-- Writes: HSET deliveries and organization; ZREM finished and dead; ZADD pending
--@include count_bytes
--@include delivery_size
local organization, webhooks, pending, finished, dead, deliveries = unpack(KEYS)
local credential, webhook_id, delivery, found, kept, most = unpack(ARGV)

--@block now
--@block api_key
if redis.call('HEXISTS', webhooks, webhook_id) == 0 then
  return {'unknown_webhook'}
end
local stored = redis.call('HGET', deliveries, delivery)
if (stored or '') ~= found and stored ~= kept then
  return {'changed_meanwhile'}
end
local used = redis.call('ZCARD', pending)
if used >= tonumber(most) and not redis.call('ZSCORE', pending, delivery) then
  return {'over_quota', 'webhook_deliveries', string.format('%d', used), most}
end
local at = string.format('%d', now)
redis.call('HSET', deliveries, delivery, kept)
count_bytes(organization, delivery_size(kept) - delivery_size(stored))
redis.call('ZREM', finished, delivery)
redis.call('ZREM', dead, delivery)
redis.call('ZADD', pending, at, delivery)
return {'ok', at}
