-- Has an organization's webhooks looked at, at a time or earlier. A time that has come is changed too: the instance that set it must see in
-- postpone_webhooks.lua that there is news.
--
-- KEYS[1] = queue            zset wq
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = delay            ms from now
--
-- Reply:  {'ok'}
-- Writes: ZADD queue, unless they are looked at earlier anyway
local queue = KEYS[1]
local organization_id, delay = ARGV[1], ARGV[2]

--@block now
local at = tonumber(redis.call('ZSCORE', queue, organization_id) or now + delay + 1)
if at <= now then
  redis.call('ZADD', queue, string.format('%.0f', at - 1), organization_id)
elseif at > now + delay then
  redis.call('ZADD', queue, string.format('%d', now + delay), organization_id)
end
return {'ok'}
