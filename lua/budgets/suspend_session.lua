-- Suspends an active session: nothing new may be done in it until it is resumed. What has begun may still settle, and its
-- time runs on. Suspending it again changes nothing: the first time and reason stay.
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
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
-- Writes: HSET and HDEL session and XADD events, once until it is resumed; for one that has
-- children HSET session each time
--@include audit
--@include budget
--@include flags
--@include one_line
--@include restrict
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, reason, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now

local agent_organization, agent_revoked, agent_scopes = unpack(redis.call('HMGET', agent, 'organization', 'revoked', 'scopes'))
--@block refuse_unknown_agent
local a, mv, h, x, e, w, gb, hx, r, sv, sa = unpack(redis.call('HMGET', session,
  'a', 'mv', 'h', 'x', 'e', 'w', 'gb', 'hx', 'r', 'sv', 'sa'))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
local flags = w or ''
--@block refuse_inactive
if not string.find(r or '', 's', 1, true) then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  restrict(session, r, 's', h, gb, mv)
  redis.call('HSET', session, 'su', string.format('%d', now))
  if reason ~= '' then
    redis.call('HSET', session, 'sr', one_line(reason))
  end
  record(events, audit, now, 'session.suspended', 'session', string.sub(session, -36), 'reason', reason)
elseif sa then
  redis.call('HSET', session, 'so', '1') -- by itself too, not only from above
end
if string.find(r or '', 'c', 1, true) then
  redis.call('HSET', session, 'sv', string.format('%d', math.max((sv or 0) + 1, now))) -- its children are to follow; see suspend_descendant.lua
end
--@block session_state
return {'ok', string.format('%d', now), agent_revoked or '', agent_scopes, state}
