-- Begins a transaction in a session: counts one action and holds the value if both fit, or changes nothing. A hold that is spent when it
-- expires counts as a lease (include/spent_holds.lua). The indexes leave out the last two bytes of its id, which are the cell.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>
-- KEYS[3] = holds                 zset sh:{cell}:<session>
-- KEYS[4] = transaction           hash t:{cell}:<transaction>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
-- KEYS[6] = agent_transactions    zset at:{cell}:<agent>
-- KEYS[7] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[8] = events                stream ev:{cell}:<agent>
-- KEYS[9] = agent_holds           zset ah:{cell}:<agent>
-- KEYS[10] = leases               zset sl:{cell}:<session>
--
-- ARGV[1] = organization_id       16 bytes, of the access token
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token
-- ARGV[4] = session_id            16 bytes
-- ARGV[5] = transaction_id        16 bytes
-- ARGV[6] = value                 micro-USD to hold
-- ARGV[7] = lifetime              ms that it may be pending, and holds
-- ARGV[8] = retention             ms that it stays readable after that
-- ARGV[9] = audit                 see include/audit.lua
-- ARGV[10] = on_expiry            commit when the hold is spent when it expires, which the transaction keeps by what follows; '' when
--                                 it is released
-- ARGV[11] = first_field          and what follows it: names and values of what the transaction only keeps, the first the
--                                 action type
--
-- Arguments: three name the caller, the others are stored or bound what is stored; packing would only hide them.
--
-- Reply:  {'ok', transaction_id, sequence, created, expires, left}  sequence from 1 on, times in ms since 1970, micro-USD that the session
--                                               has left with the hold taken
--         {'ok', transaction_id, sequence, created, expires, left, limit}  the same, where the limit would have refused if the session
--                                               did not observe
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}                   nothing was done: find_due_sessions.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds, per_action_limit}
--             as charge_session.lua, and max_value_usd_per_action in micro-USD, nil for none; nothing was counted or held
--         {'agent_limit', limit, at, left}      as charge_session.lua, and what is left of the agent's day in micro-USD, '' without a limit
--                                               for that; nothing was counted or held
-- Writes: HSET, HDEL and PEXPIRE session; HSET and PEXPIRE transaction; ZADD and PEXPIRE holds, leases, session_transactions,
-- agent_transactions and agent_holds; HSET agent; PEXPIRE agent_sessions; XADD events
--@include action_types
--@include audit
--@include agent_day
--@include agent_limit_notes
--@include agent_limits
--@include counted_holds
--@include due_in_agent
--@include flags
--@include observe
--@include one_line
--@include spent_holds
local agent, session, holds, transaction, session_transactions, agent_transactions, agent_sessions, events = unpack(KEYS)
local agent_holds, leases = KEYS[9], KEYS[10]
local organization_id, agent_id, caller_family, session_id, transaction_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local value, lifetime, retention, audit, on_expiry, first_field = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10], ARGV[11]

--@block now
--@block agent_caller session=session
--@block refuse_suspended

local type_name = one_line((unpack(ARGV, 12)))
local type_field = 't:' .. type_name
--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at begun holds_due
--@  noted_flags refunds leased_value session_spent_holds restrictions per_action_limit day_holds
--@  type_counts=type_field day_end=agent_id
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
--@block refuse_day_over agent=session_agent ends=day_end
--@block refuse_agent_holds_due
local flags = noted_flags or ''
--@block refuse_inactive
--@block refuse_suspended_session restrictions=restrictions
local used_n, max_n, used_v, max_v = used_actions + 1, tonumber(actions_limit), used_value + (held_value or 0) + value,
  tonumber(value_limit)
local limit = name_of_value_limit(refunds, value_limit)
held_value = held_value or '0'
local over_p = per_action_limit and tonumber(value) > tonumber(per_action_limit) and 'max_value_usd_per_action'
local over
--@block refuse_over_limit actions=used_n value=used_v
if refused then
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'limit', over, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds, per_action_limit}
end
local restricted_after, agent_limit, at, observed_day, observed_minute, crossed
if agent_restricted then
  restricted_after, agent_limit, at, observed_day, observed_minute, crossed =
    within_limits(agent_restricted, now, 1, value, is_observing(restrictions))
end
if agent_limit and not restricted_after then
  note_agent_limit(agent, events, audit, now, agent_limit)
  local _, left = this_day(agent_restricted, now)
  return {'agent_limit', agent_limit, at, left and string.format('%.0f', left) or ''}
end

local created, expires = string.format('%d', now), string.format('%d', now + lifetime)
local sequence = string.format('%d', (begun or 0) + 1)
local is_spent = on_expiry ~= ''
local used, due = string.format('%d', used_n), string.format('%d', math.min(tonumber(holds_due or math.huge), now + lifetime))
local typed
if is_spent then
  typed = count_read_type(session, type_name, type_counts, 1, 0, 'n', used, 'h', held_value, 'q', sequence, 'hx', due,
    'v', string.format('%d', used_value + value), 'lv', string.format('%d', (leased_value or 0) + value),
    'lh', string.format('%d', (session_spent_holds or 0) + 1))
  redis.call('ZADD', leases, expires, spent_hold(transaction_id, value, typed))
else
  typed = count_read_type(session, type_name, type_counts, 1, 0, 'n', used, 'h', string.format('%d', held_value + value),
    'q', sequence, 'hx', due)
  redis.call('ZADD', holds, expires, transaction_id .. value)
end
redis.call('HSET', transaction, 'a', agent_id, 's', session_id, 'q', sequence, 'st', 'pending', 'hv', value,
  'b', created, 'x', expires, 'ut', typed == '' and '0' or '1', first_field, unpack(ARGV, 12))
local member = string.sub(transaction_id, 1, 14)
redis.call('ZADD', session_transactions, 0, member)
redis.call('ZADD', agent_transactions, 0, member)

-- The session and its sets stay at least as long as each of its transactions.
local session_ttl = redis.call('PTTL', session)
local kept = math.max(session_ttl, lifetime + retention)
if restrictions and string.find(restrictions, '[kc]') then -- it stays until it is settled, see lua/budgets/README.md
  kept = math.max(math.max(expires_at - now, lifetime) + retention, redis.call('PTTL', holds))
end
local ttl = string.format('%d', kept)
if session_ttl < kept then
  redis.call('PEXPIRE', session, ttl)
end
if is_spent then
  --@block extend_ttl key=leases
else
  redis.call('PEXPIRE', holds, ttl)
end
redis.call('PEXPIRE', transaction, string.format('%d', lifetime + retention))
--@block extend_ttl key=session_transactions
--@block extend_ttl key=agent_transactions
--@block extend_ttl key=agent_sessions
local day = restricted_after and this_day(restricted_after, now)
if restricted_after then
  redis.call('HSET', agent, 'restricted', restricted_after)
end
if day and is_spent then
  redis.call('HSET', transaction, 'dv', string.format('%d %d', day, value))
elseif day and value ~= '0' then
  count_hold(session, day_holds, transaction_id, day, value)
  enter_due(agent, agent_holds, session, expires)
  --@block extend_ttl key=agent_holds
end
record(events, audit, now, 'transaction.begun', 'session', string.sub(session, -36), 'transaction', transaction_id,
  'held', value, 'for', string.format('%d', math.ceil(lifetime / 1000)))
--@block note_near_limits actions=used_n value=used_v
local left = string.format('%.0f', math.max(max_v - used_v, 0))
if over then
  count_observed(session, 1)
  return {'ok', transaction_id, sequence, created, expires, left, over}
end
return {'ok', transaction_id, sequence, created, expires, left}
