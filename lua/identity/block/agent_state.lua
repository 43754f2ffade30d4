-- Reads what an agent's reply shows of it: the one list of these fields in Lua. Go reads them by the same names, in
-- agent.go.
-- Takes agent. Sets state.
local state = redis.call('HMGET', agent, 'organization', 'name', 'scopes', 'description', 'metadata', 'created', 'revoked', 'suspended', 'suspension_reason', 'restricted', 'max_open_sessions', 'no_secret', 'audiences', 'jwks', 'jwks_uri')
