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
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'agent_suspended', since}    in ms since 1970
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_pending', now, ended, x, st}
--         {'not_active', ended, revoked, x, now}    of the session; in ms since 1970, '' if it has not happened
--         {'session_suspended', since}  in ms since 1970
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was changed
-- Writes: HSET and PEXPIRE session and transaction; ZADD, ZREM and PEXPIRE holds; PEXPIRE session_transactions,
-- agent_transactions and agent_sessions; XADD events
--@include audit
--@include flags
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events, agent_sessions = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, lifetime, retention, audit = unpack(ARGV)

--@block now
--@block agent_caller
--@block refuse_suspended

local t_a, t_s, t_st, t_hv, t_x = unpack(redis.call('HMGET', transaction, 'a', 's', 'st', 'hv', 'x'))
if t_a ~= agent_id then
  return {'unknown_transaction'}
end
local s_a, s_n, s_ma, s_v, s_mv, s_h, s_x, s_e, s_hx, s_w, s_gb, s_lv, s_r = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'hx', 'w', 'gb', 'lv', 'r'))
--@block refuse_holds_due hx=s_hx
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
local after
if s_a then
  after = h - t_hv + value
  local limit = value_limit(s_gb, s_mv)
  if s_v + after > tonumber(s_mv) then
    note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
    --@block show_leased v=s_v h=h lv=s_lv
    return {'limit', limit, s_n, s_ma, s_v, s_mv, h, s_x, s_gb}
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
record(events, audit, now, 'transaction.hold_changed', 'session', t_s or '', 'transaction', transaction_id,
  'held', s_a and value or '0', 'expires', expires)
if s_a then
  note_usage(session, events, audit, now, flags, tonumber(s_n), tonumber(s_ma), s_v + after, tonumber(s_mv),
    value_limit(s_gb, s_mv))
end
--@block transaction_state st='pending' v='' ov='' cm='' rb='' re='' po='' hv=value
return {'ok', changed_at, ended, expires, state, t_x}
