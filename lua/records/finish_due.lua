-- Ends a claim on an organization. What was noted since the claim began may be missing in what the caller knows: then the organization is
-- looked at again at once.
--
-- KEYS[1] = queue            zset dq:{due}
-- KEYS[2] = versions         hash dv:{due}
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = version          of the claim
-- ARGV[3] = next_due         ms since 1970 when something is due next, '' for nothing
--
-- Reply:  {'ok'}
-- Writes: ZADD or ZREM queue, HDEL versions
local queue, versions = KEYS[1], KEYS[2]
local organization_id, version, next_due = unpack(ARGV)

--@block now
if (redis.call('HGET', versions, organization_id) or '0') ~= version then
  redis.call('ZADD', queue, string.format('%d', now), organization_id)
elseif next_due == '' then
  redis.call('ZREM', queue, organization_id)
  redis.call('HDEL', versions, organization_id)
else
  redis.call('ZADD', queue, string.format('%.0f', math.max(next_due + 0, now)), organization_id)
end
return {'ok'}
