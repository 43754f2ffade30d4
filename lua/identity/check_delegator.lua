-- Checks whether an agent may hand the children of its session to other agents, or act in them: as if it created one.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the agent's access token
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token
--
-- Reply:  {'ok'}
--         {'unknown_agent'}
--         {'invalid_token'}                       the access token's agent or family is revoked
--         {'agent_suspended', since}              in ms since 1970
--         {'unknown_session'}
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}            in ms since 1970
--         {'scope_not_held', scope}               the agent or the session does not hold sessions:delegate
-- Writes: nothing
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block either_caller_with_both session=agent
--@block refuse_suspended

--@read session session_agent expires_at ended_at restrictions own_scopes
--@block refuse_unknown_session
if ended_at or now >= tonumber(expires_at) then
  return {'not_active', ended_at or '', '', expires_at, string.format('%d', now)}
end
--@block refuse_suspended_session restrictions=restrictions
local scope, held_scopes = 'sessions:delegate', own_scopes or agent_scopes
--@block hold_scope held=agent_scopes
--@block hold_scope held=held_scopes
return {'ok'}
