-- Reads the calling agent, and refuses it unless the agent exists, and the agent and the family of its access token are live.
local agent_organization, agent_revoked, caller_revoked, agent_restricted = unpack(redis.call('HMGET', agent,
  'organization', 'revoked', caller_family, 'restricted'))
--@block refuse_unknown_agent
if agent_revoked or caller_revoked then
  return {'invalid_token'}
end
--@block refuse_unbound family=caller_family
