-- As either_caller, and reads the agent's scopes too.
local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
local agent_organization, agent_revoked, caller_revoked, agent_scopes = holder[1], holder[2], holder[3], holder[4]
--@block refuse_either_caller
