-- Refuses what a suspended agent may not do. agent_restricted are the agent's flags, which few agents have: s it is
-- suspended, n its scopes were narrowed, p its tokens must be bound, e all of them were revoked before, l it has limits.
-- A revoked agent is refused as that.
-- Takes agent, agent_restricted, agent_revoked.
if agent_restricted and not agent_revoked and string.find(agent_restricted, 's', 1, true) then
  return {'agent_suspended', redis.call('HGET', agent, 'suspended')}
end
