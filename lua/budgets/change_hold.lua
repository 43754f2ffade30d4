-- Changes what a pending transaction holds and until when, if the value fits. A transaction without a session holds
-- nothing: only its fields change. What the hold's expiry does never changes. The metering gateway gives what it holds more time, also when
-- the agent is suspended or revoked, or the session is over.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>; one that does not exist when the transaction has none
-- KEYS[3] = holds                 zset sh:{cell}:<session>
-- KEYS[4] = transaction           hash t:{cell}:<transaction>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
-- KEYS[6] = agent_transactions    zset at:{cell}:<agent>
-- KEYS[7] = events                stream ev:{cell}:<agent>
-- KEYS[8] = leases                zset sl:{cell}:<session>
-- KEYS[9] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[10] = agent_holds          zset ah:{cell}:<agent>
--
-- ARGV[1] = organization_id       16 bytes, of the access token
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token; 'gateway' when that calls
-- ARGV[4] = transaction_id        16 bytes
-- ARGV[5] = value                 micro-USD to hold, '' to leave it
-- ARGV[6] = lifetime              ms from now that it may be pending, '' to leave it
-- ARGV[7] = retention             ms that it stays readable after that
-- ARGV[8] = audit                 see include/audit.lua
--
-- Arguments: three name the caller, three the hold; each may be left as it is, so none follows from another.
--
-- Reply:  {'ok', now, ended, expires_at, state, x_before}  as commit_transaction.lua; x_before what x was until now
--         {'ok', now, ended, expires_at, state, x_before, limit}
--             the same, where the limit would have refused if the session did not observe
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'agent_suspended', since}    in ms since 1970
--         {'unknown_transaction'}       also to the gateway, if it does not hold it
--         {'held_by_gateway'}           no agent settles or changes it
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}           nothing was done: find_due_sessions.lua goes first
--         {'not_pending', now, ended, expires_at, st}
--         {'not_active', ended, revoked, expires_at, now}    of the session; in ms since 1970, '' if it has not happened
--         {'session_suspended', since}  in ms since 1970
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             as charge_session.lua; nothing was changed
--         {'agent_limit', limit, at}    as charge_session.lua; nothing was changed
-- Writes: HSET, HDEL and PEXPIRE session; HSET and PEXPIRE transaction; ZADD, ZREM and PEXPIRE holds and leases; ZADD and PEXPIRE
-- agent_holds; PEXPIRE session_transactions, agent_transactions and agent_sessions; HSET agent; XADD events
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
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events, leases = unpack(KEYS)
local agent_sessions, agent_holds = KEYS[9], KEYS[10]
local organization_id, agent_id, caller_family, transaction_id, value, lifetime, retention, audit = unpack(ARGV)

--@block now
--@block gateway_caller
--@block either_caller session=session
if not by_gateway then
  --@block refuse_suspended
end

--@read transaction transaction_agent transaction_session transaction_status transaction_held_value transaction_expires_at
--@  transaction_on_expiry transaction_action_type transaction_counted_type transaction_day_value
--@  transaction_held_by_gateway
if transaction_agent ~= agent_id then
  return {'unknown_transaction'}
end
--@block refuse_holder
--@read session session_agent session_used_actions session_actions_limit session_used_value session_value_limit session_held_value
--@  session_expires_at session_ended_at session_holds_due session_noted_flags session_refunds session_leased_value
--@  session_restrictions session_day_holds session_per_action_limit
--@block refuse_holds_due due=session_holds_due
--@block refuse_agent_holds_due
local held_value, flags = session_held_value or '0', session_noted_flags or ''
local changed_at, ended = string.format('%d', now), session_end(transaction_session, session_agent, session_ended_at,
  transaction_on_expiry)
if transaction_status ~= 'pending' or ended ~= '' or now >= tonumber(transaction_expires_at) then
  return {'not_pending', changed_at, ended, transaction_expires_at, status_after(transaction_status, transaction_on_expiry,
    transaction_expires_at, now)}
end
-- A hold that is gone was released when its time was up, by a clock that has gone back since.
local spent_type = transaction_on_expiry and (transaction_counted_type == '1' and one_line(transaction_action_type) or '')
local spent_before, open = spent_type and spent_hold(transaction_id, transaction_held_value, spent_type), nil
if spent_type then
  open = redis.call('ZSCORE', leases, spent_before)
else
  open = redis.call('ZSCORE', holds, transaction_id .. transaction_held_value)
end
if session_agent and not open then
  return {'not_pending', changed_at, ended, changed_at, status_after(transaction_status, transaction_on_expiry, changed_at, now)}
end
if by_gateway then
  value = '' -- its hold never grows
elseif session_agent and session_ended_at then
  return {'not_active', session_ended_at, '', session_expires_at, changed_at}
elseif session_agent and now >= tonumber(session_expires_at) then
  note_expired(session, events, audit, now, flags)
  return {'not_active', '', '', session_expires_at, changed_at}
end
if not by_gateway then
  --@block refuse_suspended_session restrictions=session_restrictions
end

local expires = transaction_expires_at
if value == '' then
  value = transaction_held_value
end
if lifetime ~= '' then
  expires = string.format('%d', now + lifetime)
end
local after, day, by, over, over_p, over_v, observed_day
if session_agent then
  after = held_value - transaction_held_value + value
  local limit = name_of_value_limit(session_refunds, session_value_limit)
  -- A session that has observed may hold more than its limit: then a hold may still shrink.
  over_v = session_used_value + after > tonumber(session_value_limit) and tonumber(value) > tonumber(transaction_held_value)
    and limit
  over_p = session_per_action_limit and tonumber(value) > math.max(session_per_action_limit, transaction_held_value)
    and 'max_value_usd_per_action'
  over = over_p or over_v
  if over and not observes(session_restrictions, tonumber(session_used_actions), session_used_value + after, session_actions_limit,
    session_value_limit) then
    over = refusing(session_restrictions, over_p, false, over_v)
    note(session, events, audit, now, flags, over == over_p and 'P' or 'V', 'session.limit_reached', 'limit', over)
    --@block show_leased value=session_used_value held=held_value leased=session_leased_value
    --@block show_delegated actions=session_used_actions value=session_used_value refunds=session_refunds restrictions=session_restrictions
    return {'limit', over, session_used_actions, session_actions_limit, session_used_value, session_value_limit, held_value,
      session_expires_at, session_refunds}
  end
  local counted_day, counted = counted_hold(session, transaction_id)
  if spent_type then
    counted_day, counted = day_of(transaction_day_value)
  end
  day, by = this_day(agent_restricted, now), value - transaction_held_value
  if counted_day ~= day then
    counted = 0
  end
  by = math.max(by, -counted) -- what counted on an earlier day is not given back to this one
  if day and by ~= 0 then
    local restricted, agent_limit, at = book(agent_restricted, now, by), nil, nil
    if by > 0 then
      restricted, agent_limit, at, observed_day = within_limits(agent_restricted, now, 0, by, is_observing(session_restrictions))
    end
    if not restricted then
      note_agent_limit(agent, events, audit, now, agent_limit)
      return {'agent_limit', agent_limit, at}
    end
    over = over or observed_day
    redis.call('HSET', agent, 'restricted', restricted)
    if spent_type then
      redis.call('HSET', transaction, 'dv', string.format('%d %d', day, counted + by))
    else
      session_day_holds = forget_hold(session, session_day_holds, transaction_id, day)
      session_day_holds = count_hold(session, session_day_holds, transaction_id, day, counted + by)
    end
    if agent_limit then
      note_agent_limit(agent, events, audit, now, agent_limit)
    end
    note_agent_day(agent, events, audit, now, restricted)
  end
  redis.call('HSET', session, 'hx', string.format('%d', math.min(tonumber(session_holds_due or math.huge), tonumber(expires))))
  if spent_type then
    redis.call('HSET', session, 'v', string.format('%d', session_used_value - transaction_held_value + value),
      'lv', string.format('%d', session_leased_value - transaction_held_value + value))
    redis.call('ZADD', leases, expires, spent_hold(transaction_id, value, spent_type))
  else
    redis.call('HSET', session, 'h', string.format('%d', after))
    redis.call('ZADD', holds, expires, transaction_id .. value)
  end
  -- What was held before goes after the other, because an empty set loses its TTL.
  if value ~= transaction_held_value and spent_type then
    redis.call('ZREM', leases, spent_before)
  elseif value ~= transaction_held_value then
    redis.call('ZREM', holds, transaction_id .. transaction_held_value)
  end
end
redis.call('HSET', transaction, 'hv', value, 'x', expires)

-- The keys that are read with the transaction stay at least as long.
local kept = expires - now + retention
local ttl = string.format('%d', kept)
--@block extend_ttl key=transaction
--@block extend_ttl key=agent_transactions
if session_agent then
  --@block extend_ttl key=session
  --@block extend_ttl key=holds
  --@block extend_ttl key=leases
  --@block extend_ttl key=session_transactions
  --@block extend_ttl key=agent_sessions
end
if session_day_holds and not spent_type then
  enter_due(agent, agent_holds, session, expires)
  --@block extend_ttl key=agent_holds
end
record(events, audit, now, 'transaction.hold_changed', 'session', transaction_session or '', 'transaction', transaction_id,
  'held', session_agent and value or '0', 'expires', expires)
if session_agent then
  flags = note_usage(session, events, audit, now, flags, tonumber(session_used_actions), tonumber(session_actions_limit),
    session_used_value + after, tonumber(session_value_limit),
    name_of_value_limit(session_refunds, session_value_limit))
end
--@block transaction_state status='pending' charged='' overage='' committed='' rolled='' reason='' post='' held=value
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_p, over_v, observed_day)
  return {'ok', changed_at, ended, expires, state, transaction_expires_at, over}
end
return {'ok', changed_at, ended, expires, state, transaction_expires_at}
