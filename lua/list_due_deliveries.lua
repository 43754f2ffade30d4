-- Reads the settings of a webhook, and its deliveries that are due, the longest due first.
--
-- KEYS[1] = webhooks    hash ow:{cell}:<organization>
-- KEYS[2] = pending     zset wp:{cell}:<webhook>
-- KEYS[3] = deliveries  hash wd:{cell}:<webhook>
--
-- ARGV[1] = webhook_id  16 bytes
-- ARGV[2] = limit       how many at the most
--
-- Reply:  {'ok', now, waiting, next, due, settings}  in ms since 1970; how many wait; when the next is due that is not due now, '' for none;
--                                          an array of ids and records; settings as Go writes them
--         {'unknown_webhook'}
-- Writes: nothing
local webhooks, pending, deliveries = KEYS[1], KEYS[2], KEYS[3]
local webhook_id, limit = ARGV[1], ARGV[2]

--@block now
local settings = redis.call('HGET', webhooks, webhook_id)
if not settings then
  return {'unknown_webhook'}
end
local at = string.format('%d', now)
local due = {}
local ids = redis.call('ZRANGEBYSCORE', pending, '-inf', at, 'LIMIT', 0, limit)
for i = 1, #ids do
  due[2 * i - 1] = ids[i]
  due[2 * i] = redis.call('HGET', deliveries, ids[i]) or ''
end
local later = redis.call('ZRANGEBYSCORE', pending, '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local next = later[2] and string.format('%.0f', tonumber(later[2])) or ''
local waiting = string.format('%d', redis.call('ZCARD', pending))
return {'ok', at, waiting, next, due, settings}
