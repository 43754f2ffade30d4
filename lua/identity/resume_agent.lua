-- Ends an agent's suspension. Resuming one that is not suspended changes nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = reason           '' for none
-- ARGV[3] = audit            see include/audit.lua
-- ARGV[4] = shown            '1' to return the agent, '' when it is one of many
--
-- Reply:  {'ok', agent}      as suspend_agent.lua
--         {'unknown_agent'}
--         {'agent_revoked'}
-- Writes: HDEL and HSET agent and XADD events, once
--@include audit
--@include unrestrict_agent
local agent, events = KEYS[1], KEYS[2]
local organization_id, reason, audit, shown = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now

--@read agent agent_organization agent_revoked agent_restricted
--@block refuse_unknown_agent
if agent_revoked then
  return {'agent_revoked'}
end
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
if string.find(agent_restricted or '', 's', 1, true) then
  redis.call('HDEL', agent, 'suspended', 'suspension_reason')
  unrestrict_agent(agent, agent_restricted, 's')
  record(events, audit, now, 'agent.resumed', 'reason', reason)
end
if shown == '' then
  return {'ok', {}}
end
--@block agent_state
return {'ok', state}
