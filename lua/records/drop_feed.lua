-- Forgets that an organization's feed may have work, unless that was noted again since the caller looked.
--
-- KEYS[1] = feeds            zset oeo
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = noted            its score before the caller looked
--
-- Reply:  {'ok'}
-- Writes: ZREM feeds
local feeds = KEYS[1]
local organization_id, noted = unpack(ARGV)

if (redis.call('ZSCORE', feeds, organization_id) or 0) + 0 == noted + 0 then
  redis.call('ZREM', feeds, organization_id)
end
return {'ok'}
