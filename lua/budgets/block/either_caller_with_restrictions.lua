-- Does the same as either_caller, and also reads the agent's field restricted (identity/include/restrict_agent.lua).
-- Takes agent, caller_family, organization_id. Sets agent_fields, agent_organization, agent_restricted, agent_revoked,
-- caller_revoked.
local agent_fields = redis.call('HMGET', agent, 'organization', caller_family, 'revoked', 'restricted')
local agent_organization, caller_revoked, agent_revoked, agent_restricted = agent_fields[1], agent_fields[2], agent_fields[3], agent_fields[4]
--@block refuse_either_caller session=$session
