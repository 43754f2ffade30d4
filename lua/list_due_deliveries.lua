-- Reads the deliveries of a webhook that are due, the longest due first.
--
-- KEYS[1] = pending     zset wp:{cell}:<webhook>
-- KEYS[2] = deliveries  hash wd:{cell}:<webhook>
--
-- ARGV[1] = limit       how many at the most
--
-- Reply:  {'ok', now, waiting, next, due}  in ms since 1970; how many wait; when the next is due that is not due now, '' for none;
--                                          an array of ids and records
-- Writes: nothing
local pending, deliveries = KEYS[1], KEYS[2]
local limit = ARGV[1]

--@block now
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
return {'ok', at, waiting, next, due}
