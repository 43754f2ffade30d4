-- Claims organizations in which something is due, those first where it has been for longest. If the caller is gone before it has finished
-- with one, that is due again when the claim ends.
--
-- KEYS[1] = queue            zset dq:{due}
-- KEYS[2] = versions         hash dv:{due}
--
-- ARGV[1] = most             organizations
-- ARGV[2] = lease            ms that the claim lasts
--
-- Reply:  {'ok', organizations, versions}  arrays of 16 bytes, and of the numbers of their last notes
-- Writes: ZADD queue
local queue, versions = KEYS[1], KEYS[2]
local most, lease = ARGV[1], ARGV[2]

--@block now
local found, numbers = redis.call('ZRANGEBYSCORE', queue, '-inf', string.format('%d', now), 'LIMIT', 0, most), {}
for i, organization_id in ipairs(found) do
  numbers[i] = redis.call('HGET', versions, organization_id) or '0'
end
for _, organization_id in ipairs(found) do
  redis.call('ZADD', queue, string.format('%d', now + lease), organization_id)
end
return {'ok', found, numbers}
