-- Notes when something is due in an organization: some instance looks at it then. Each note has a number, so that finish_due.lua sees
-- what was noted meanwhile.
--
-- KEYS[1] = queue            zset dq:{due}
-- KEYS[2] = versions         hash dv:{due}
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = at               ms since 1970
--
-- Reply:  {'ok'}
-- Writes: HSET versions, ZADD queue
local queue, versions = KEYS[1], KEYS[2]
local organization_id, at = unpack(ARGV)

--@block now
local version, due = redis.call('HGET', versions, organization_id), redis.call('ZSCORE', queue, organization_id)
redis.call('HSET', versions, organization_id, string.format('%.0f', math.max((version or 0) + 1, now)))
if not due or at + 0 < due + 0 then
  redis.call('ZADD', queue, at, organization_id)
end
return {'ok'}
