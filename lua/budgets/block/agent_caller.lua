-- Reads the calling agent, and refuses it unless the agent exists, and the agent and the family of its access token are live.
-- Takes agent, caller_family, organization_id. Sets agent_organization, agent_restricted, agent_revoked, caller_revoked.
--@read agent agent_organization agent_revoked caller_revoked=caller_family agent_restricted
--@block refuse_unknown_agent
if agent_revoked or caller_revoked then
  return {'invalid_token'}
end
--@block refuse_unbound family=caller_family
--@block refuse_session_key family=caller_family session=$session
