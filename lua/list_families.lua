-- Reads which refresh-token families an agent has, and may have: some have ended already.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = families         zset af:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the organization that asks
--
-- Reply:  {'ok', now, members}  now in ms since 1970, members an array of 14-byte strings, those that end first before
--                               the others; none of a revoked agent
--         {'unknown_agent'}
-- Writes: nothing
--@include family_score
local agent, families = KEYS[1], KEYS[2]
local organization_id = ARGV[1]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', 'epoch')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
local members = {}
if not holder[2] then
  members = redis.call('ZRANGEBYSCORE', families, family_score(tonumber(holder[3] or 0), now), '+inf')
end
return {'ok', string.format('%.0f', now), members}
