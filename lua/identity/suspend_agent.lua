-- Suspends an agent: scripts that issue tokens to it or let it do something new read its flag, so it takes effect at once
-- for all its tokens and sessions. What has begun may still settle. Suspending it again changes nothing: the first time and
-- reason stay.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = reason           '' for none
-- ARGV[3] = audit            see include/audit.lua
-- ARGV[4] = shown            '1' to return the agent, '' when it is one of many
--
-- Reply:  {'ok', agent}      as block/agent_state.lua reads it, after the change; empty unless shown
--         {'unknown_agent'}
--         {'agent_revoked'}
-- Writes: HSET agent and XADD events, once until it is resumed
--@include audit
--@include restrict_agent
local agent, events = KEYS[1], KEYS[2]
local organization_id, reason, audit, shown = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now

--@read agent agent_organization agent_revoked agent_restricted
--@block refuse_unknown_agent
if agent_revoked then
  return {'agent_revoked'}
end
if not string.find(agent_restricted or '', 's', 1, true) then
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
  restrict_agent(agent, agent_restricted, 's')
  redis.call('HSET', agent, 'suspended', string.format('%d', now))
  if reason ~= '' then
    redis.call('HSET', agent, 'suspension_reason', reason)
  end
  record(events, audit, now, 'agent.suspended', 'reason', reason)
end
if shown == '' then
  return {'ok', {}}
end
--@block agent_state
return {'ok', state}
