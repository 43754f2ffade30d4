-- Revokes an agent. Every script that acts for an agent reads this one field, so its secret, tokens and sessions stop
-- working without another write. Revoking again changes nothing and returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = audit            see include/audit.lua
--
-- Reply:  {'ok', revoked}  revoked in ms since 1970
--         {'unknown_agent'}
-- Writes: HSET agent and XADD events, once in its life
--@include audit
local agent, events = KEYS[1], KEYS[2]
local organization_id, audit = ARGV[1], ARGV[2]

--@block now

--@read agent agent_organization agent_revoked
--@block refuse_unknown_agent
if agent_revoked then
  return {'ok', agent_revoked}
end

local revoked = string.format('%d', now)
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', agent, 'revoked', revoked)
record(events, audit, now, 'agent.revoked')
return {'ok', revoked}
