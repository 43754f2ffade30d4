-- Reads the settings of a webhook, and its deliveries that are due, the longest due first. What lies farther ahead than any retry
-- was written before the clock went back, and is due too.
--
-- KEYS[1] = webhooks    hash ow:{cell}:<organization>
-- KEYS[2] = pending     zset wp:{cell}:<webhook>
-- KEYS[3] = deliveries  hash wd:{cell}:<webhook>
--
-- ARGV[1] = webhook_id  16 bytes
-- ARGV[2] = limit       how many at the most
-- ARGV[3] = farthest    ms ahead of now that a retry may lie
--
-- Reply:  {'ok', now, waiting, next, due, settings}  in ms since 1970; how many wait; when the next is due that is not due now, '' for none;
--                                          an array of ids and records; settings as Go writes them
--         {'unknown_webhook'}
-- Writes: nothing
local webhooks, pending, deliveries = KEYS[1], KEYS[2], KEYS[3]
local webhook_id, limit, farthest = ARGV[1], ARGV[2] + 0, ARGV[3]

--@block now
local settings = redis.call('HGET', webhooks, webhook_id)
if not settings then
  return {'unknown_webhook'}
end
local at, end_of_retries = string.format('%d', now), string.format('%d', now + farthest)
local due = {}
local function add(from, to)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', pending, from, to, 'LIMIT', 0, limit - #due / 2)) do
    due[#due + 1] = id
    due[#due + 1] = redis.call('HGET', deliveries, id) or ''
  end
end
add('-inf', at)
add('(' .. end_of_retries, '+inf')
local later = redis.call('ZRANGEBYSCORE', pending, '(' .. at, end_of_retries, 'WITHSCORES', 'LIMIT', 0, 1)
local next = later[2] and string.format('%.0f', tonumber(later[2])) or ''
local waiting = string.format('%d', redis.call('ZCARD', pending))
return {'ok', at, waiting, next, due, settings}
