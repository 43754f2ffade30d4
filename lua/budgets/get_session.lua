-- Reads a session and what its status depends on. It may note an expiry in the audit trail; no caller requested that,
-- so a lost answer leaves nothing in doubt.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok', now, revoked, scopes, lv, ml, su, sr, r, oc, mp, dn, dv, pa, w, '', n, ma, v, mv, h, x, e, c, sc, ov, gb, md}  now and
--                                                revoked in ms since
--                                                1970 ('' when the agent is not revoked), scopes of the agent; then what
--                                                block/session_state.lua reads, with lv to w before the rest, in its order,
--                                                but for a, which the caller knows; c in ms since the time that the
--                                                session's id carries
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'unknown_session'}
--         {'damaged'}      the agent has no field of scopes, not even an empty one
--         {'holds_due'}    nothing was done: release_holds.lua goes first
-- Writes: nothing that was requested; when it first observes the expiry, HSET session and XADD events
--@joined
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now
--@block either_caller_with_scopes

local a, n, ma, v, mv, h, x, e, c, sc, ov, gb, md, lv, ml, w = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'ov', 'gb', 'md', 'lv', 'ml', 'w'))
--@block refuse_unknown_session
if not agent_scopes then
  return {'damaged'}
end
local r
if h then
  local s_hx, s_r = unpack(redis.call('HMGET', session, 'hx', 'r'))
  if now >= (s_hx or now + 1) + 0 then
    return {'holds_due'}
  end
  r = s_r
end
if not e and not agent_revoked and now >= (x or now + 1) + 0 then
  --@include audit
  --@include flags
  note(session, events, audit, now, w or '', 'x', 'session.expired')
end
if r then
  local su, sr, oc, mp, dn, dv, pa = unpack(redis.call('HMGET', session, 'su', 'sr', 'oc', 'mp', 'dn', 'dv', 'pa'))
  return {'ok', string.format('%d', now), agent_revoked, agent_scopes, lv, ml, su, sr, r, oc, mp, dn, dv, pa, w, '', n, ma, v, mv, h, x, e, c, sc, ov, gb, md}
end
return {'ok', string.format('%d', now), agent_revoked, agent_scopes, lv, ml, '', '', '', '', '', '', '', '', w, '', n, ma, v, mv, h, x, e, c, sc, ov, gb, md}
