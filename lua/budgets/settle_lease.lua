-- Settles a lease: charges what was used of it and returns the rest to the session, whether it is open or has expired; then
-- grants its renewal, if one is wanted and fits. What goes beyond the lease is charged as far as the limits allow
-- now, and the rest is recorded as overage, because it has happened. So is what exceeds max_value_usd_per_action for each action,
-- unless the session observes; but that uses up the limits all the same, else it could be spent once more.
-- Settling again with the same numbers changes nothing and returns the first answer.
-- What the lease counted in the agent's day is given back on that day only.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = leases           zset sl:{cell}:<session>
-- KEYS[4] = lease            hash l:{cell}:<lease>
-- KEYS[5] = renewal          hash l:{cell}:<lease> of the renewal, the lease again when none is wanted
-- KEYS[6] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = lease_id         16 bytes
-- ARGV[5] = action_count     used
-- ARGV[6] = value            micro-USD used
-- ARGV[7] = renewal_id       16 bytes, '' when none is wanted
-- ARGV[8] = renew            '<actions> <micro-USD> <ms> <1 for partial, else 0>' wanted; or why the renewal is refused; ''
--                            when none is wanted
-- ARGV[9] = retention        ms that the renewal stays readable after it
-- ARGV[10] = kept            ms that the settled lease stays readable from now
-- ARGV[11] = audit           see include/audit.lua
-- ARGV[12] = types           lines of '<actions> <micro-USD> <action type>' of what was used; the type as include/one_line.lua
--
-- Arguments: three name the caller, three what was used, two the renewal; what is kept how long is known to Go alone.
--
-- Reply:  {'ok', again, state, types_grown}     again '1' when it was settled before, else ''; types_grown the bytes that new
--                                               action types take, '0' for none; state an array of a, s, n, v, b,
--                                               x, un, uv, on, total_overage, at, lt, ri, rn, rv, rx, rr, observed_refusals with
--                                               nil for what it has not;
--                                               rr why there is no renewal: a code, of a limit also its name and the
--                                               actions and micro-USD that were wanted
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_lease'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}                   nothing was done: find_due_sessions.lua goes first
--         {'lease_settled'}                     with other numbers; nothing was changed
-- Writes: HSET and PEXPIRE lease, renewal and session; ZREM, ZADD and PEXPIRE leases; HSET and HDEL session; HSET agent; XADD
-- events
--@include action_types
--@include audit
--@include agent_day
--@include agent_limit_notes
--@include agent_limits
--@include agent_leases
--@include flags
--@include open_lease
--@include observe
--@include leases
local agent, session, leases, lease, renewal, events = unpack(KEYS)
local organization_id, agent_id, caller_family, lease_id, action_count, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local renewal_id, renew, retention, kept, audit = ARGV[7], ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11]
local types, types_grown = ARGV[12], 0

--@block now
--@block either_caller_with_restrictions session=session

--@read lease lease_agent lease_session lease_actions lease_value lease_expires_at lease_settled_at lease_settled_actions
--@  lease_settled_value lease_day
if lease_agent ~= agent_id then
  return {'unknown_lease'}
end
if lease_settled_at and (lease_settled_actions ~= action_count or lease_settled_value ~= value) then
  return {'lease_settled'}
end
if lease_settled_at then
  --@block lease_state
  return {'ok', '1', state, '0'}
end
--@read session session_agent session_used_actions session_actions_limit session_used_value session_value_limit session_held_value
--@  session_expires_at session_ended_at session_refunds session_holds_due session_noted_flags session_leased_value
--@  session_longest_lease session_total_overage session_restrictions session_closed_at session_per_action_limit session_spent_holds
--@  day_end=agent_id
--@block refuse_holds_due due=session_holds_due
--@block refuse_day_over agent=session_agent ends=day_end
--@block refuse_agent_holds_due
if session_closed_at then
  session_agent = nil -- it is closed: the lease stays spent in full
end

-- What was leased may have been spent in any case, what goes beyond it only if the session has room.
local open = redis.call('ZSCORE', leases, open_lease(lease_id, lease_actions, lease_value))
local active = session_agent and not session_ended_at and not agent_revoked and now < tonumber(session_expires_at)
local held, flags = tonumber(session_held_value or 0), session_noted_flags or ''
local most_n, most_v = tonumber(lease_actions), tonumber(lease_value)
if active then
  most_n = math.max(most_n, session_actions_limit - session_used_actions + lease_actions)
  most_v = math.max(most_v, session_value_limit - session_used_value - held + lease_value)
end
local day, day_left = this_day(agent_restricted, now)
if active and observes(session_restrictions, session_used_actions - lease_actions + action_count,
  session_used_value - lease_value + value + held, session_actions_limit, session_value_limit) then
  most_n, most_v = tonumber(action_count), tonumber(value)
elseif day then
  most_v = math.min(most_v, lease_value + day_left)
end
local used_n, used_v = math.min(tonumber(action_count), most_n), math.min(tonumber(value), most_v)
local over_n, over_v = action_count - used_n, value - used_v
local charged_over_v = 0
if session_per_action_limit and not is_observing(session_restrictions) then
  charged_over_v = math.max(value - action_count * session_per_action_limit - over_v, 0)
  over_v = over_v + charged_over_v
end
local after_n, after_v, leased = (session_used_actions or 0) - lease_actions + used_n, (session_used_value
  or 0) - lease_value + used_v, tonumber(session_leased_value or 0)
local others = redis.call('ZCARD', leases)
if open then
  others, leased = others - 1, math.max(leased - lease_value, 0)
end

local restricted, agent_limit, at = agent_restricted, nil, nil
if day and (used_v > tonumber(lease_value) or (lease_day and lease_day + 0 == day)) then
  restricted = book(restricted, now, used_v - lease_value)
end

local wanted_n, wanted_v, lifetime, partial = string.match(renew, '^(%d+) (%d+) (%d+) ([01])$')
local refusal, limit, got_n, got_v, got_ms, beyond, observed_day, observed_minute = renew, nil, nil, nil, nil, nil, nil, nil
if wanted_n and not active then
  refusal = 'session_not_active'
elseif wanted_n and agent_restricted and string.find(agent_restricted, 's', 1, true) then
  refusal = 'agent_suspended'
elseif wanted_n and session_restrictions and string.find(session_restrictions, 's', 1, true) then
  refusal = 'session_suspended'
elseif wanted_n then
  local s = {used_actions = after_n, actions_limit = session_actions_limit, used_value = after_v,
    value_limit = tonumber(session_value_limit), held_value = held, expires_at = session_expires_at, refunds = session_refunds,
    longest_lease = session_longest_lease, restrictions = session_restrictions}
  got_n, got_v, got_ms, beyond = fit(s, now, others - (session_spent_holds or 0), tonumber(wanted_n), tonumber(wanted_v), tonumber(lifetime), partial == '1')
  limit, refusal = got_v, ''
  if not got_n then
    refusal = 'session_limit_reached ' .. limit .. ' ' .. wanted_n .. ' ' .. wanted_v
  end
end
if got_n and restricted and string.find(restricted, 'l', 1, true) then
  local restricted_after
  restricted_after, agent_limit, at, got_n, got_v, observed_day, observed_minute = fit_agent(restricted, now, got_n, got_v, partial == '1',
    is_observing(session_restrictions))
  if restricted_after then
    restricted, limit = restricted_after, got_v
  else
    refusal, limit, got_n, got_v = agent_refusal(agent_limit, at, wanted_n, wanted_v), nil, nil, nil
  end
end

local settled_at, late = string.format('%.0f', now), now >= tonumber(lease_expires_at) or not open
if wanted_n then
  redis.call('HSET', lease, 'at', settled_at) -- is refused when Redis is full: then Go asks again without the renewal
else
  redis.call('HDEL', lease, '') -- goes on when Redis is full, see lua.go
end
local fields = {'at', settled_at, 'un', action_count, 'uv', value}
local used, over = string.format('%.0f', used_v), string.format('%.0f', over_v)
local outcome = {'actions', string.format('%.0f', used_n), 'charged', used, 'overage', over}
if over_n > 0 then
  local over_actions = string.format('%.0f', over_n)
  outcome[#outcome + 1] = 'overage_actions'
  outcome[#outcome + 1] = over_actions
  fields[#fields + 1] = 'on'
  fields[#fields + 1] = over_actions
end
if over_v > 0 then
  fields[#fields + 1] = 'ov'
  fields[#fields + 1] = over
end
if charged_over_v > 0 then
  fields[#fields + 1] = 'oc'
  fields[#fields + 1] = string.format('%.0f', charged_over_v)
end
if late then
  outcome[#outcome + 1] = 'late'
  outcome[#outcome + 1] = '1'
  fields[#fields + 1] = 'lt'
  fields[#fields + 1] = '1'
end
if refusal ~= '' then
  fields[#fields + 1] = 'rr'
  fields[#fields + 1] = refusal
end
redis.call('ZREM', leases, open_lease(lease_id, lease_actions, lease_value))
record(events, audit, now, 'lease.settled', 'session', lease_session, 'lease', lease_id, unpack(outcome))
if got_n then
  local granted_n, granted_v, expires = grant(session, leases, renewal, events, audit, now, retention, agent_id, lease_session,
    renewal_id, got_n, got_v, got_ms)
  if day then
    redis.call('HSET', renewal, 'dy', string.format('%d', day))
  end
  after_n, after_v, leased, others = after_n + got_n, after_v + got_v, leased + got_v, others + 1
  for i, part in ipairs({'ri', renewal_id, 'rn', granted_n, 'rv', granted_v, 'rx', expires}) do
    fields[#fields + 1] = part
  end
end
redis.call('HSET', lease, unpack(fields))
if restricted ~= agent_restricted then
  redis.call('HSET', agent, 'restricted', restricted)
  note_agent_day(agent, events, audit, now, restricted)
end
if agent_limit then
  note_agent_limit(agent, events, audit, now, agent_limit)
end
redis.call('PEXPIRE', lease, kept)

if session_agent then
  redis.call('HSET', session, 'n', string.format('%.0f', after_n), 'v', string.format('%.0f', after_v))
  local rest_n, rest_v = used_n, used_v -- what is charged; other overage counts under no type
  for type_n, type_v, name in string.gmatch(types, '(%d+) (%d+) ([^\n]+)\n') do
    type_n, type_v = math.min(type_n, rest_n), math.min(type_v, rest_v)
    local _, grown = count_type(session, name, type_n, type_v)
    types_grown = types_grown + grown
    rest_n, rest_v = rest_n - type_n, rest_v - type_v
  end
  if redis.call('PTTL', session) < retention then
    redis.call('PEXPIRE', session, string.format('%.0f', retention)) -- what it used is not folded yet
  end
  if over_v > 0 then
    local most = 9007199254740991 -- what a double counts exactly
    redis.call('HSET', session, 'ov', string.format('%.0f', math.min((session_total_overage or 0) + over_v, most)))
  end
  if others > 0 then
    local due = math.min(tonumber(session_holds_due or math.huge), tonumber(redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]))
    redis.call('HSET', session, 'lv', string.format('%.0f', leased), 'h', session_held_value or '0', 'hx', string.format('%.0f',
      due))
  else
    redis.call('HDEL', session, 'lv')
  end
  flags = note_usage(session, events, audit, now, flags, after_n, tonumber(session_actions_limit), after_v + held,
    tonumber(session_value_limit),
    name_of_value_limit(session_refunds, session_value_limit))
  flags = note_observed_lease(session, events, audit, now, flags, beyond, observed_day, observed_minute)
  if limit and not got_n then
    note_no_room(session, events, audit, now, flags, limit)
  end
end
--@block lease_state
return {'ok', '', state, string.format('%d', types_grown)}
