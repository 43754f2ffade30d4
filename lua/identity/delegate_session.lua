-- Grants a delegated token (RFC 8693) for a child session to the agent of its parent, which has been checked in its own cell. Of
-- the token it keeps nothing but a line in the audit trail: each grant is another token.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the parent's agent
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = drawn            id that was drawn for the new token, as text; see include/in_epoch.lua
-- ARGV[4] = scopes           that the token is to have, separated by single spaces; '' for as many as it may
-- ARGV[5] = most_scopes      that it may have, separated by single spaces
-- ARGV[6] = audit            see include/audit.lua
-- ARGV[7] = key              thumbprint of the key that the token is bound to (RFC 9449 §5), 32 bytes; '' for none
--
-- Arguments: four say what the token is to be, and two who asks for it.
--
-- Reply:  {'ok', scopes, rest, family}            scopes separated by single spaces; rest: ms until the session expires;
--                                                 family: the id that the token names, as text
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'agent_suspended', since}              in ms since 1970
--         {'session_suspended', since}            in ms since 1970
--         {'scope_not_held', scope}               the first that the agent, the session or most_scopes lack
--         {'proof_required'}                      the agent's tokens must be bound to a key
-- Writes: XADD events; HDEL agent of marks that have lapsed
--@include audit
--@include in_epoch
--@include still_held
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, drawn, scopes, most_scopes, audit, key = unpack(ARGV)

--@block now
--@read agent agent_organization agent_revoked agent_restricted agent_scopes agent_epoch
--@block refuse_unknown_agent
--@read session session_agent expires_at ended_at restrictions own_scopes
--@block refuse_unknown_session
if ended_at or agent_revoked or now >= tonumber(expires_at) then
  return {'not_active', ended_at or '', agent_revoked or '', expires_at, string.format('%d', now)}
end
--@block refuse_suspended
--@block refuse_suspended_session restrictions=restrictions
local held_scopes = still_held(most_scopes, still_held(own_scopes or agent_scopes, agent_scopes))
--@block hold_scopes held=held_scopes
--@block require_key
if scopes == '' then
  scopes = held_scopes
end

--@block drop_lapsed_marks
local family = in_epoch(drawn, agent_epoch)
record(events, audit, now, 'token.issued', 'family', family, 'session', string.sub(session, -36))
return {'ok', scopes, string.format('%d', expires_at - now), family}
