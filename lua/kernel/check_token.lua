-- Checks whether an access token's agent and family are live, and the agent is not suspended.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the token
-- ARGV[2] = token_family     'family:' and the 16-byte family id of the token
--
-- Reply:  {'ok'}
--         {'ok', scopes_left}  of an agent whose scopes were narrowed; see block/scopes_left.lua
--         {'invalid_token'}
--         {'agent_suspended', since}  in ms since 1970
-- Writes: nothing
--@joined
local agent = KEYS[1]
local organization_id, token_family = ARGV[1], ARGV[2]

--@block live_token session=agent
local scopes_left
if agent_restricted then
  --@block refuse_suspended
  --@block scopes_left
end
if scopes_left then
  return {'ok', scopes_left}
end
return {'ok'}
