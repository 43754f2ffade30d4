-- Reads the agent and refuses a caller that may not act on it. The caller is the agent itself, with an access token of
-- caller_family; or its organization, with an API key and caller_family ''.
local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
local agent_organization, agent_revoked, caller_revoked = holder[1], holder[2], holder[3]
--@block refuse_either_caller
