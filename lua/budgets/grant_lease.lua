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
-- Reply:  {'ok', lease_id, used_actions, used_value, created, expires}
--             what was granted: actions, and value in micro-USD; times in ms since
--                                               1970
--         {'ok', lease_id, used_actions, used_value, created, expires, limit}
--             the same, where the limit would have refused if the session did not observe
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}                   nothing was done: find_due_sessions.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             as charge_session.lua; limit may also be max_lease_seconds, expires_at
--                                               or max_open_leases
--         {'agent_limit', limit, at}            as charge_session.lua
-- Writes: HSET and PEXPIRE lease; ZADD and PEXPIRE leases; HSET session and agent; XADD events
--@include audit
--@include agent_day
--@include agent_limit_notes
--@include agent_limits
--@include agent_leases
--@include flags
--@include open_lease
--@include observe
--@include leases
local agent, session, leases, lease, events = unpack(KEYS)
local organization_id, agent_id, caller_family, session_id, lease_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max_actions, max_value, lifetime = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local partial, retention, audit = ARGV[9], tonumber(ARGV[10]), ARGV[11]

--@block now
--@block either_caller_with_restrictions session=session
--@block refuse_suspended

--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at refunds holds_due
--@  noted_flags leased_value longest_lease restrictions spent_holds day_end=agent_id
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
--@block refuse_day_over agent=session_agent ends=day_end
--@block refuse_agent_holds_due
local next_expiry = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
--@block refuse_holds_due due=next_expiry
local flags = noted_flags or ''
--@block refuse_inactive
--@block refuse_suspended_session restrictions=restrictions
held_value = held_value or '0'
local s = {used_actions = used_actions, actions_limit = actions_limit, used_value = used_value, value_limit = tonumber(value_limit),
  held_value = held_value, expires_at = expires_at, refunds = refunds, longest_lease = longest_lease, restrictions = restrictions}
local got_n, got_v, got_ms, over = fit(s, now, redis.call('ZCARD', leases) - (spent_holds or 0), max_actions, max_value, lifetime, partial ~= '')
if not got_n then
  local limit = got_v
  note_no_room(session, events, audit, now, flags, limit)
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end
local restricted_after, agent_limit, at, observed_day, observed_minute
if agent_restricted and string.find(agent_restricted, 'l', 1, true) then
  restricted_after, agent_limit, at, got_n, got_v, observed_day, observed_minute = fit_agent(agent_restricted, now, got_n, got_v, partial ~= '',
    is_observing(restrictions))
end
if agent_limit and not restricted_after then
  note_agent_limit(agent, events, audit, now, agent_limit)
  return {'agent_limit', agent_limit, at}
end

local granted_n, granted_v, expires = grant(session, leases, lease, events, audit, now, retention, agent_id, session_id,
  lease_id, got_n, got_v, got_ms)
local used_n, used_v = used_actions + got_n, used_value + got_v
local due = math.min(tonumber(holds_due or math.huge), tonumber(next_expiry or math.huge), tonumber(expires))
redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v),
  'lv', string.format('%.0f', (leased_value or 0) + got_v), 'h', held_value, 'hx', string.format('%.0f', due))
local day = restricted_after and this_day(restricted_after, now)
if restricted_after then
  redis.call('HSET', agent, 'restricted', restricted_after)
end
if day then
  redis.call('HSET', lease, 'dy', string.format('%d', day))
end
if agent_limit then
  note_agent_limit(agent, events, audit, now, agent_limit)
end
if restricted_after then
  note_agent_day(agent, events, audit, now, restricted_after)
end
flags = note_usage(session, events, audit, now, flags, used_n, tonumber(actions_limit), used_v + held_value, tonumber(value_limit),
  name_of_value_limit(refunds, value_limit))
note_observed_lease(session, events, audit, now, flags, over, observed_day, observed_minute)
over = over or observed_day or observed_minute
if over then
  return {'ok', lease_id, granted_n, granted_v, string.format('%.0f', now), expires, over}
end
return {'ok', lease_id, granted_n, granted_v, string.format('%.0f', now), expires}
