-- Notes that an organization's feed may have work. Each time counts, so drop_feed.lua sees that it was noted again.
--
-- KEYS[1] = feeds            zset oeo
--
-- ARGV[1] = organization_id  16 bytes
--
-- Reply:  {'ok'}
-- Writes: ZADD feeds
local feeds = KEYS[1]
local organization_id = ARGV[1]

redis.call('ZADD', feeds, string.format('%.0f', (redis.call('ZSCORE', feeds, organization_id) or 0) + 1), organization_id)
return {'ok'}
