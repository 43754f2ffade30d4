-- Reads an agent's refresh-token families. Some of them may have ended.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = families         zset af:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
--
-- Reply:  {'ok', now, members}  now in ms since 1970, members an array of 14-byte strings, those that end first before
--                               the others; none of a revoked agent
--         {'unknown_agent'}
-- Writes: nothing
--@include family_score
local agent, families = KEYS[1], KEYS[2]
local organization_id = ARGV[1]

--@block now

--@read agent agent_organization agent_revoked agent_epoch
--@block refuse_unknown_agent
local members = {}
if not agent_revoked then
  members = redis.call('ZRANGEBYSCORE', families, family_score(tonumber(agent_epoch or 0), now), '+inf')
end
return {'ok', string.format('%d', now), members}
