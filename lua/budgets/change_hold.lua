-- Changes what a pending transaction holds and until when, if the value fits. A transaction without a session holds
-- nothing: only its fields change.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>; one that does not exist when the transaction has none
-- KEYS[3] = holds                 zset sh:{cell}:<session>
-- KEYS[4] = transaction           hash t:{cell}:<transaction>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
-- KEYS[6] = agent_transactions    zset at:{cell}:<agent>
-- KEYS[7] = events                stream ev:{cell}:<agent>
-- KEYS[8] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[9] = agent_holds           zset ah:{cell}:<agent>
--
-- ARGV[1] = organization_id       16 bytes, of the access token
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token
-- ARGV[4] = transaction_id        16 bytes
-- ARGV[5] = value                 micro-USD to hold, '' to leave it
-- ARGV[6] = lifetime              ms from now that it may be pending, '' to leave it
-- ARGV[7] = retention             ms that it stays readable after that
-- ARGV[8] = audit                 see include/audit.lua
--
-- Arguments: three name the caller, three the hold; each may be left as it is, so none follows from another.
--
-- Reply:  {'ok', now, ended, x, state, x_before}  as commit_transaction.lua; x_before what x was until now
--         {'ok', now, ended, x, state, x_before, limit}  the same, where the limit would have refused if the session did not observe
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'agent_suspended', since}    in ms since 1970
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}           nothing was done: find_due_sessions.lua goes first
--         {'not_pending', now, ended, x, st}
--         {'not_active', ended, revoked, x, now}    of the session; in ms since 1970, '' if it has not happened
--         {'session_suspended', since}  in ms since 1970
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was changed
--         {'agent_limit', limit, at}    as charge_session.lua; nothing was changed
-- Writes: HSET, HDEL and PEXPIRE session; HSET and PEXPIRE transaction; ZADD, ZREM and PEXPIRE holds; ZADD and PEXPIRE
-- agent_holds; PEXPIRE session_transactions, agent_transactions and agent_sessions; HSET agent; XADD events
--@include audit
--@include agent_day
--@include agent_limit_notes
--@include agent_limits
--@include counted_holds
--@include due_in_agent
--@include flags
--@include observe
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events, agent_sessions, agent_holds = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, lifetime, retention, audit = unpack(ARGV)

--@block now
--@block agent_caller
--@block refuse_suspended

local t_a, t_s, t_st, t_hv, t_x = unpack(redis.call('HMGET', transaction, 'a', 's', 'st', 'hv', 'x'))
if t_a ~= agent_id then
  return {'unknown_transaction'}
end
local s_a, s_n, s_ma, s_v, s_mv, s_h, s_x, s_e, s_hx, s_w, s_gb, s_lv, s_r, s_hd, s_mp = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'hx', 'w', 'gb', 'lv', 'r', 'hd', 'mp'))
--@block refuse_holds_due hx=s_hx
--@block refuse_agent_holds_due
local h, flags = s_h or '0', s_w or ''
local changed_at, ended = string.format('%d', now), session_end(t_s, s_a, s_e)
if t_st ~= 'pending' or ended ~= '' or now >= tonumber(t_x) then
  return {'not_pending', changed_at, ended, t_x, t_st}
end
-- A hold that is gone was released when its time was up, by a clock that has gone back since.
if s_a and not redis.call('ZSCORE', holds, transaction_id .. t_hv) then
  return {'not_pending', changed_at, ended, changed_at, t_st}
end
if s_a and now >= tonumber(s_x) then
  note(session, events, audit, now, flags, 'x', 'session.expired')
  return {'not_active', '', '', s_x, changed_at}
end
--@block refuse_suspended_session r=s_r

local expires = t_x
if value == '' then
  value = t_hv
end
if lifetime ~= '' then
  expires = string.format('%d', now + lifetime)
end
local after, day, by, over, over_p, over_v, over_day
if s_a then
  after = h - t_hv + value
  local limit = value_limit(s_gb, s_mv)
  -- A session that has observed may hold more than its limit: then a hold may still shrink.
  over_v = s_v + after > tonumber(s_mv) and tonumber(value) > tonumber(t_hv) and limit
  over_p = s_mp and tonumber(value) > math.max(s_mp, t_hv) and 'max_value_usd_per_action'
  over = over_p or over_v
  if over and not observes(s_r, tonumber(s_n), s_v + after, s_ma, s_mv) then
    over = refusing(s_r, over_p, false, over_v)
    note(session, events, audit, now, flags, over == over_p and 'P' or 'V', 'session.limit_reached', 'limit', over)
    --@block show_leased v=s_v h=h lv=s_lv
    --@block show_delegated n=s_n v=s_v gb=s_gb r=s_r
    return {'limit', over, s_n, s_ma, s_v, s_mv, h, s_x, s_gb}
  end
  local counted_day, counted = counted_hold(session, transaction_id)
  day, by = this_day(agent_restricted, now), value - t_hv
  if counted_day ~= day then
    counted = 0
  end
  by = math.max(by, -counted) -- what counted on an earlier day is not given back to this one
  if day and by ~= 0 then
    local restricted, limited, at = book(agent_restricted, now, by), nil, nil
    if by > 0 then
      restricted, limited, at, over_day = within_limits(agent_restricted, now, 0, by, is_observing(s_r))
    end
    if not restricted then
      note_agent_limit(agent, events, audit, now, limited)
      return {'agent_limit', limited, at}
    end
    over = over or over_day
    redis.call('HSET', agent, 'restricted', restricted)
    s_hd = forget_hold(session, s_hd, transaction_id, day)
    s_hd = count_hold(session, s_hd, transaction_id, day, counted + by)
    if limited then
      note_agent_limit(agent, events, audit, now, limited)
    end
    note_agent_day(agent, events, audit, now, restricted)
  end
  redis.call('HSET', session, 'h', string.format('%d', after),
    'hx', string.format('%d', math.min(tonumber(s_hx or math.huge), tonumber(expires))))
  redis.call('ZADD', holds, expires, transaction_id .. value)
  if value ~= t_hv then
    redis.call('ZREM', holds, transaction_id .. t_hv) -- after the other, because an empty set loses its TTL
  end
end
redis.call('HSET', transaction, 'hv', value, 'x', expires)

-- The keys that are read with the transaction stay at least as long.
local kept = expires - now + retention
local ttl = string.format('%d', kept)
--@block extend_ttl key=transaction
--@block extend_ttl key=agent_transactions
if s_a then
  --@block extend_ttl key=session
  --@block extend_ttl key=holds
  --@block extend_ttl key=session_transactions
  --@block extend_ttl key=agent_sessions
end
if s_hd then
  enter_due(agent, agent_holds, session, expires)
  --@block extend_ttl key=agent_holds
end
record(events, audit, now, 'transaction.hold_changed', 'session', t_s or '', 'transaction', transaction_id,
  'held', s_a and value or '0', 'expires', expires)
if s_a then
  flags = note_usage(session, events, audit, now, flags, tonumber(s_n), tonumber(s_ma), s_v + after, tonumber(s_mv),
    value_limit(s_gb, s_mv))
end
--@block transaction_state st='pending' v='' ov='' cm='' rb='' re='' po='' hv=value
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_p, over_v, over_day)
  return {'ok', changed_at, ended, expires, state, t_x, over}
end
return {'ok', changed_at, ended, expires, state, t_x}
