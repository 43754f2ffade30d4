-- Has an organization's webhooks looked at, at a time or earlier.
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
local at = redis.call('ZSCORE', queue, organization_id)
if not at or tonumber(at) > now + delay then
  redis.call('ZADD', queue, string.format('%d', now + delay), organization_id)
end
return {'ok'}
