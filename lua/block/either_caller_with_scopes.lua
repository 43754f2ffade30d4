-- As either_caller, and reads the agent's scopes too.
local fields = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
local agent_organization, agent_revoked, caller_revoked, agent_scopes = fields[1], fields[2], fields[3], fields[4]
--@block refuse_either_caller
