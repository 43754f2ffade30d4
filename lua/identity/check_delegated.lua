-- Checks whether a delegated token (RFC 8693) is live: its agent, its own family and its session are, and neither the agent nor the
-- session is suspended. What it says of those that act with it, check_token.lua checks in their cells.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the token
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = token_family     'family:' and the 16-byte family id of the token
--
-- Reply:  {'ok'}
--         {'ok', scopes_left}           of an agent whose scopes were narrowed; see block/scopes_left.lua
--         {'invalid_token'}             the session is over too
--         {'agent_suspended', since}    in ms since 1970
--         {'session_suspended', since}  in ms since 1970
-- Writes: nothing
--@joined
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id, token_family = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block live_token session=agent
local scopes_left
if agent_restricted then
  --@block refuse_suspended
  --@block scopes_left
end
--@read session session_agent expires_at ended_at restrictions
if session_agent ~= agent_id or ended_at or now >= expires_at + 0 then
  return {'invalid_token'}
end
--@block refuse_suspended_session restrictions=restrictions
if scopes_left then
  return {'ok', scopes_left}
end
return {'ok'}
