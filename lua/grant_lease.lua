-- Grants a lease: counts its actions and its value in the session at once, or changes nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = leases           zset sl:{cell}:<session>
-- KEYS[4] = lease            hash l:{cell}:<lease>
-- KEYS[5] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = session_id       16 bytes
-- ARGV[5] = lease_id         16 bytes
-- ARGV[6] = max_actions      wanted
-- ARGV[7] = max_value        micro-USD wanted
-- ARGV[8] = lifetime         ms wanted
-- ARGV[9] = partial          '1' to take as much of each as fits, '' for all or nothing
-- ARGV[10] = retention       ms that the lease stays readable after it
-- ARGV[11] = audit           see include/audit.lua
--
-- Arguments: three name the caller, two the objects, four what is wanted; each is compared with a limit of its own.
--
-- Reply:  {'ok', lease_id, n, v, created, expires}  what was granted: actions, and value in micro-USD; times in ms since
--                                               1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; limit may also be max_lease_seconds, expires_at
--                                               or max_open_leases
-- Writes: HSET and PEXPIRE lease; ZADD and PEXPIRE leases; HSET session; XADD events
--@include audit
--@include flags
--@include open_lease
--@include leases
local agent, session, leases, lease, events = unpack(KEYS)
local organization_id, agent_id, caller_family, session_id, lease_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max_actions, max_value, lifetime = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local partial, retention, audit = ARGV[9], tonumber(ARGV[10]), ARGV[11]

--@block now
--@block either_caller
--@block refuse_suspended

local a, n, ma, v, mv, h, x, e, gb, hx, w, lv, ml, r = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'gb', 'hx', 'w', 'lv', 'ml', 'r'))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
local next_expiry = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
--@block refuse_holds_due hx=next_expiry
local flags = w or ''
--@block refuse_inactive
--@block refuse_suspended_session r=r
h = h or '0'
local s = {n = n, ma = ma, v = v, mv = tonumber(mv), h = h, x = x, gb = gb, ml = ml}
local got_n, got_v, got_ms = fit(s, now, redis.call('ZCARD', leases), max_actions, max_value, lifetime, partial ~= '')
if not got_n then
  local limit = got_v
  note_no_room(session, events, audit, now, flags, limit)
  --@block show_leased v=v h=h lv=lv
  return {'limit', limit, n, ma, v, mv, h, x, gb}
end

local granted_n, granted_v, expires = grant(session, leases, lease, events, audit, now, retention, agent_id, session_id,
  lease_id, got_n, got_v, got_ms)
local used_n, used_v = n + got_n, v + got_v
local due = math.min(tonumber(hx or math.huge), tonumber(next_expiry or math.huge), tonumber(expires))
redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v),
  'lv', string.format('%.0f', (lv or 0) + got_v), 'h', h, 'hx', string.format('%.0f', due))
note_usage(session, events, audit, now, flags, used_n, tonumber(ma), used_v + h, tonumber(mv), value_limit(gb, mv))
return {'ok', lease_id, granted_n, granted_v, string.format('%.0f', now), expires}
