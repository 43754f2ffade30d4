-- Notes how far a webhook has come, and what became of some of its deliveries, if the caller still has the claim and no other instance has
-- noted anything since.
--
-- KEYS[1] = webhooks    hash ow:{cell}:<organization>
-- KEYS[2] = progress    hash owp:{cell}:<organization>
-- KEYS[3] = pending     zset wp:{cell}:<webhook>
-- KEYS[4] = finished    zset wf:{cell}:<webhook>
-- KEYS[5] = dead        zset wx:{cell}:<webhook>
-- KEYS[6] = deliveries  hash wd:{cell}:<webhook>
-- KEYS[7] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = term        number of the claim's term
-- ARGV[2] = webhook_id  16 bytes
-- ARGV[3] = found       the progress that the caller read: '<position> <version> <failing since, ms or 0> <missed>
--                       <version of the URL that was tested> <confirmed at, ms or 0>'
-- ARGV[4] = reached     the new one
-- ARGV[5] = outcomes    '<pending, delivered or dead> <at> <delivery> <record>' in lines; at in ms since 1970: when the next
--                       attempt is due, or when it ended
-- ARGV[6] = hurry       '1' makes everything due that waits, else ''
--
-- Reply:  {'ok', waiting}  how many deliveries wait
--         {'unknown_webhook'}
--         {'changed_meanwhile'}        another has the claim, or the progress is another: read it anew
-- Writes: HSET progress, deliveries and organization; ZADD and ZREM pending, finished, dead; HDEL deliveries
--@include count_bytes
--@include delivery_size
local webhooks, progress, pending, finished, dead, deliveries, organization = unpack(KEYS)
local term, webhook_id, found, reached, outcomes, hurry = unpack(ARGV)

if redis.call('HEXISTS', webhooks, webhook_id) == 0 then
  return {'unknown_webhook'}
end
local t = redis.call('HGET', progress, 't')
if t ~= term or redis.call('HGET', progress, webhook_id) ~= found then
  return {'changed_meanwhile'}
end
redis.call('HSET', progress, webhook_id, reached)
local bytes = 0
for state, at, id, kept in string.gmatch(outcomes, '(%a+) (%d+) (%S+) ([^\n]*)\n') do
  bytes = bytes + delivery_size(kept) - delivery_size(redis.call('HGET', deliveries, id))
  redis.call('HSET', deliveries, id, kept)
  if state == 'pending' then
    redis.call('ZADD', pending, at, id)
  else
    redis.call('ZREM', pending, id)
  end
  if state == 'delivered' then
    redis.call('ZADD', finished, at, id)
  end
  if state == 'dead' then
    redis.call('ZADD', dead, at, id)
  end
end
local past = redis.call('ZRANGE', finished, 0, -1 - 100)
for i = 1, #past do
  bytes = bytes - delivery_size(redis.call('HGET', deliveries, past[i]))
  redis.call('ZREM', finished, past[i])
  redis.call('HDEL', deliveries, past[i])
end
local given_up = redis.call('ZRANGE', dead, 0, -1 - 256)
for i = 1, #given_up do
  bytes = bytes - delivery_size(redis.call('HGET', deliveries, given_up[i]))
  redis.call('ZREM', dead, given_up[i])
  redis.call('HDEL', deliveries, given_up[i])
end
count_bytes(organization, bytes)
if hurry == '1' then
  local waits = redis.call('ZRANGE', pending, 0, -1)
  for i = 1, #waits do
    redis.call('ZADD', pending, 0, waits[i])
  end
end
return {'ok', string.format('%d', redis.call('ZCARD', pending))}
