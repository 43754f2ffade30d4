-- Has an organization's webhooks looked at next at a time, or no more. If another instance has changed the time since the caller set it,
-- nothing changes: there is news.
--
-- KEYS[1] = queue            zset wq
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = found            the time that the caller set, in ms since 1970; '' for any
-- ARGV[3] = delay            ms from now; '' for no more
--
-- Reply:  {'ok', at}         the time that is set now, in ms since 1970, '' for none
-- Writes: ZADD or ZREM queue
local queue = KEYS[1]
local organization_id, found, delay = ARGV[1], ARGV[2], ARGV[3]

--@block now
local score = redis.call('ZSCORE', queue, organization_id)
if score and found ~= '' and tonumber(score) ~= tonumber(found) then
  return {'ok', string.format('%.0f', tonumber(score))}
end
if delay == '' then
  redis.call('ZREM', queue, organization_id)
  return {'ok', ''}
end
local at = string.format('%d', now + delay)
redis.call('ZADD', queue, at, organization_id)
return {'ok', at}
