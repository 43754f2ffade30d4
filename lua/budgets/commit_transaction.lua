-- Commits a transaction that is pending or has expired. Releases what it holds and charges what it cost, as far as the
-- session's limit and the agent's limit for a day allow now. The rest is recorded as overage, because the action has
-- happened. An expired transaction is committed late: its cm is not before its x.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>; one that does not exist when the transaction has none
-- KEYS[3] = holds                 zset sh:{cell}:<session>
-- KEYS[4] = transaction           hash t:{cell}:<transaction>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
-- KEYS[6] = agent_transactions    zset at:{cell}:<agent>
-- KEYS[7] = events                stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id       16 bytes, of the access token
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token
-- ARGV[4] = transaction_id        16 bytes
-- ARGV[5] = value                 micro-USD that it cost, '' for what it holds
-- ARGV[6] = post_state            JSON object, '' for none
-- ARGV[7] = retention             ms that it stays readable from now
-- ARGV[8] = audit                 see include/audit.lua
--
-- Arguments: three name the caller, two what to commit; the outcome, the retention and the audit differ by call.
--
-- Reply:  {'ok', now, ended, x, state}  now and x, when it would have expired or has, in ms since 1970; ended as
--                                       include/states.lua says; state an array of st, v, ov, cm, rb, re, po, hv
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}           nothing was done: find_due_sessions.lua goes first
--         {'not_pending', now, ended, x, st}
-- Writes: HSET and PEXPIRE transaction; PEXPIRE session, session_transactions and agent_transactions; ZREM holds;
-- HSET and HDEL session; HSET agent; XADD events
--@include action_types
--@include audit
--@include agent_day
--@include agent_limit_notes
--@include counted_holds
--@include holds
--@include flags
--@include observe
--@include one_line
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, post_state, retention, audit = unpack(ARGV)

--@block now
--@block agent_caller

local t_a, t_s, t_st, t_hv, t_x, t_ty, t_ut = unpack(redis.call('HMGET', transaction, 'a', 's', 'st', 'hv', 'x', 'ty', 'ut'))
if t_a ~= agent_id then
  return {'unknown_transaction'}
end
local s_a, s_n, s_ma, s_v, s_mv, s_h, s_e, s_ov, s_hx, s_w, s_x, s_gb, s_lv, s_r, s_hd, s_cl, s_d = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'e', 'ov', 'hx', 'w', 'x', 'gb', 'lv', 'r', 'hd', 'cl', agent_id))
--@block refuse_holds_due hx=s_hx
--@block refuse_day_over a=s_a d=s_d
--@block refuse_agent_holds_due
local held, flags = tonumber(s_h or 0), s_w or ''
local committed, ended, expires = string.format('%d', now), session_end(t_s, s_a, s_e), t_x
if t_st ~= 'pending' or s_cl or ended == 'gone' or (ended ~= '' and tonumber(ended) < tonumber(expires)) then
  return {'not_pending', committed, ended, expires, t_st}
end
local hold = s_a and redis.call('ZSCORE', holds, transaction_id .. t_hv)
local late = now >= tonumber(expires) or (s_a and not hold)

if value == '' then
  value = t_hv
end
if post_state == '' then
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
else
  redis.call('HSET', transaction, 'po', post_state)
end
local charged, overage = tonumber(value), 0
if s_a then
  if hold then
    held = release_hold(session, holds, transaction_id .. t_hv, held, s_gb, s_lv)
  end
  local day, day_left = this_day(agent_restricted, now)
  local counted, before = 0, hold and t_hv + 0 or 0 -- of the hold: on this day; on others, or before the limit was set
  if hold and s_hd then
    s_hd, counted = forget_hold(session, s_hd, transaction_id, day)
    before = t_hv - counted
  end
  -- A session that has observed may have used more than its limit: what was held is charged all the same.
  local room = math.max(s_mv - s_v - held, hold and tonumber(t_hv) or 0)
  local beyond = observes(s_r, tonumber(s_n), s_v + held + value, s_ma, s_mv)
  if beyond then
    room = tonumber(value)
  end
  if s_e or now >= tonumber(s_x) then
    room = math.min(room, tonumber(t_hv)) -- a session that is over spends what was held once, no more
  end
  if day and not beyond then
    room = math.min(room, before + counted + day_left)
  end
  charged = math.min(charged, room)
  overage = value - charged
  local counts = math.max(charged - before, 0)
  if day and counts > 0 then
    redis.call('HSET', transaction, 'dv', string.format('%d %d', day, counts)) -- what a rollback gives back to this day
  end
  if day and counts ~= counted then
    local booked = book(agent_restricted, now, counts - counted)
    redis.call('HSET', agent, 'restricted', booked)
    note_agent_day(agent, events, audit, now, booked)
  end
  if day and counts > counted and counts - counted >= day_left then
    note_agent_limit(agent, events, audit, now, 'max_value_usd_per_day')
  end
  redis.call('HSET', session, 'v', string.format('%d', s_v + charged))
  if t_ut then
    count_type(session, t_ut == '1' and one_line(t_ty) or '', 0, charged)
    redis.call('HSET', transaction, 'ut', t_ut .. 'c')
  end
  if overage > 0 then
    local most = 9007199254740991 -- what a double counts exactly
    redis.call('HSET', session, 'ov', string.format('%d', math.min((s_ov or 0) + overage, most)))
  end
end
local v, ov = string.format('%d', charged), string.format('%d', overage)
if late and now < tonumber(expires) then
  expires = committed -- its hold was released when its time was up, by a clock that has gone back since
end
redis.call('HSET', transaction, 'st', 'committed', 'v', v, 'ov', ov, 'cm', committed, 'x', expires)
local kept, ttl = tonumber(retention), retention
redis.call('PEXPIRE', transaction, ttl)
if s_a then -- what it used is not folded yet
  --@block extend_ttl key=session
end
--@block extend_ttl key=session_transactions
--@block extend_ttl key=agent_transactions
local outcome = {'charged', v, 'overage', ov}
if late then
  outcome = {'charged', v, 'overage', ov, 'late', '1'}
end
record(events, audit, now, 'transaction.committed', 'session', t_s or '', 'transaction', transaction_id, unpack(outcome))
if s_a then
  note_usage(session, events, audit, now, flags, tonumber(s_n), tonumber(s_ma), s_v + charged + held, tonumber(s_mv),
    value_limit(s_gb, s_mv))
end
--@block transaction_state st='committed' v=v ov=ov cm=committed rb='' re='' po=post_state hv=t_hv
return {'ok', committed, ended, expires, state}
