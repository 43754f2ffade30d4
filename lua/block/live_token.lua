-- Refuses an access token unless its agent is the organization's, and both the agent and the token's family are live.
-- Takes agent, organization_id, token_family. Sets agent_fields, agent_organization, agent_restricted, agent_revoked,
-- family_revoked.
local agent_fields = redis.call('HMGET', agent, 'organization', 'revoked', token_family, 'restricted')
local agent_organization, agent_revoked, family_revoked, agent_restricted = agent_fields[1], agent_fields[2], agent_fields[3], agent_fields[4]
if agent_organization ~= organization_id or agent_revoked or family_revoked then
  return {'invalid_token'}
end
--@block refuse_unbound family=token_family
--@block refuse_session_key family=token_family session=$session
