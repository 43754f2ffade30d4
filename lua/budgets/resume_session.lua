-- Ends a session's suspension. Resuming one that is not suspended changes nothing. One that is suspended from above too stays
-- so.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = reason           '' for none
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok', now, revoked, scopes, session}  as get_session.lua, after the change
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
-- Writes: HDEL and HSET session and XADD events, once; for one that has children HSET session each time
--@include audit
--@include budget
--@include flags
--@include restrict
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, reason, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now

--@read agent agent_organization agent_revoked agent_scopes
--@block refuse_unknown_agent
--@read session session_agent expires_at ended_at noted_flags refunds holds_due restrictions suspension_version suspended_above
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
local flags = noted_flags or ''
--@block refuse_inactive
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
if suspended_above then
  redis.call('HDEL', session, 'so')
elseif string.find(restrictions or '', 's', 1, true) then
  redis.call('HDEL', session, 'su', 'sr')
  unrestrict(session, restrictions, 's', holds_due, refunds)
  record(events, audit, now, 'session.resumed', 'session', string.sub(session, -36), 'reason', reason)
end
if string.find(restrictions or '', 'c', 1, true) then
  -- Its children follow: suspend_descendant.lua.
  redis.call('HSET', session, 'sv', string.format('%d', math.max((suspension_version or 0) + 1, now)))
end
--@block session_state
return {'ok', string.format('%d', now), agent_revoked or '', agent_scopes, state}
