-- Reads which organizations' webhooks are to be looked at now, the longest due first.
--
-- KEYS[1] = queue  zset wq
--
-- ARGV[1] = limit  how many at the most
--
-- Reply:  {'ok', due}  an array of 16 bytes each
-- Writes: nothing
local queue = KEYS[1]
local limit = ARGV[1]

--@block now
local due = redis.call('ZRANGEBYSCORE', queue, '-inf', string.format('%d', now), 'LIMIT', 0, limit)
return {'ok', due}
