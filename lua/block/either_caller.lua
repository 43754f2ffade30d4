-- Reads the agent and refuses a caller that may not act on it. The caller is the agent itself, with an access token of
-- caller_family; or its organization, with an API key and caller_family ''.
-- Takes agent, caller_family, organization_id. Sets agent_fields, agent_organization, agent_restricted, agent_revoked,
-- caller_revoked.
local agent_fields = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'restricted')
local agent_organization, agent_revoked, caller_revoked, agent_restricted = agent_fields[1], agent_fields[2], agent_fields[3], agent_fields[4]
--@block refuse_either_caller session=$session
