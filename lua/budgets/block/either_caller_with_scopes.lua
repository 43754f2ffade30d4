-- Does the same as either_caller, and also reads the agent's scopes.
-- Takes agent, caller_family, organization_id. Sets agent_fields, agent_organization, agent_restricted, agent_revoked,
-- agent_scopes, caller_revoked.
local agent_fields = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes', 'restricted')
local agent_organization, agent_revoked, caller_revoked, agent_scopes = agent_fields[1], agent_fields[2], agent_fields[3], agent_fields[4]
local agent_restricted = agent_fields[5]
--@block refuse_either_caller session=$session
