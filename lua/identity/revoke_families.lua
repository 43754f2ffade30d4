-- Revokes all refresh-token families of an agent: a family of another epoch than the agent's cannot be refreshed. Their
-- access tokens stop working once end_families.lua has marked each.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
--         {'unknown_agent'}
-- Writes: HSET agent, XADD events
--@include audit
local agent, events = KEYS[1], KEYS[2]
local organization_id, audit = ARGV[1], ARGV[2]

--@block now

local agent_organization, agent_epoch = unpack(redis.call('HMGET', agent, 'organization', 'epoch'))
--@block refuse_unknown_agent

redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', agent, 'epoch', string.format('%d', (agent_epoch or 0) + 1))
record(events, audit, now, 'agent.families_revoked')
return {'ok'}
