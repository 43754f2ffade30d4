-- Refuses an unknown agent, and an access token whose agent or family is revoked. An API key may read a revoked agent.
-- Takes agent, agent_organization, agent_restricted, agent_revoked, caller_family, caller_revoked, organization_id.
--@block refuse_unknown_agent
if caller_revoked or (agent_revoked and caller_family ~= '') then
  return {'invalid_token'}
end
--@block refuse_unbound family=caller_family
--@block refuse_session_key family=caller_family session=$session
