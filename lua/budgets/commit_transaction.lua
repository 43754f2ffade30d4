-- Commits a transaction that is pending or has expired. Releases what it holds and charges what it cost, as far as the
-- session's limit and the agent's limit for a day allow now. The rest is recorded as overage, because the action has
-- happened. An expired transaction is committed late: its committed_at is not before its expires_at. Of a hold that was spent when it
-- expired (include/spent_holds.lua), the commit corrects what it cost, once.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>; one that does not exist when the transaction has none
-- KEYS[3] = holds                 zset sh:{cell}:<session>
-- KEYS[4] = transaction           hash t:{cell}:<transaction>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
-- KEYS[6] = agent_transactions    zset at:{cell}:<agent>
-- KEYS[7] = events                stream ev:{cell}:<agent>
-- KEYS[8] = leases                zset sl:{cell}:<session>
--
-- ARGV[1] = organization_id       16 bytes, of the access token
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token; 'gateway' when that calls
-- ARGV[4] = transaction_id        16 bytes
-- ARGV[5] = value                 micro-USD that it cost, '' for what it holds
-- ARGV[6] = post_state            JSON object, '' for none
-- ARGV[7] = retention             ms that it stays readable from now
-- ARGV[8] = audit                 see include/audit.lua
--
-- Arguments: three name the caller, two what to commit; the outcome, the retention and the audit differ by call.
--
-- Reply:  {'ok', now, ended, expires_at, state}  now and expires_at, when it would have expired or has, in ms since 1970; ended as
--                                       include/states.lua says; state an array of status, charged_value, overage, committed_at,
--                                       rolled_back_at, reason, post_state, held_value
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}       also to the gateway, if it does not hold it
--         {'held_by_gateway'}           no agent settles or changes it
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}           nothing was done: find_due_sessions.lua goes first
--         {'not_pending', now, ended, expires_at, st}
-- Writes: HSET and PEXPIRE transaction; PEXPIRE session, session_transactions and agent_transactions; ZREM holds and leases;
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
--@include spent_holds
--@include settle_spent_hold
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events, leases = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, post_state, retention, audit = unpack(ARGV)

--@block now
--@block gateway_caller
--@block either_caller session=session

--@read transaction transaction_agent transaction_session transaction_status transaction_held_value transaction_expires_at
--@  transaction_action_type transaction_counted_type transaction_on_expiry transaction_day_value
--@  transaction_held_by_gateway
if transaction_agent ~= agent_id then
  return {'unknown_transaction'}
end
--@block refuse_holder
local type_name = transaction_counted_type == '1' and one_line(transaction_action_type) or ''
local type_field = 't:' .. type_name
--@read session session_agent session_used_actions session_actions_limit session_used_value session_value_limit session_held_value
--@  session_ended_at session_total_overage session_holds_due session_noted_flags session_expires_at session_refunds
--@  session_leased_value session_spent_holds session_restrictions session_day_holds session_closed_at
--@  type_counts=type_field day_end=agent_id
--@block refuse_holds_due due=session_holds_due
--@block refuse_day_over agent=session_agent ends=day_end
--@block refuse_agent_holds_due
local held, flags = tonumber(session_held_value or 0), session_noted_flags or ''
local committed, ended, expires = string.format('%d', now), session_end(transaction_session, session_agent, session_ended_at,
  transaction_on_expiry), transaction_expires_at
if transaction_status ~= 'pending' or session_closed_at or ended == 'gone' or (transaction_on_expiry and not session_agent) or (ended ~= ''
  and tonumber(ended) < tonumber(expires)) then
  return {'not_pending', committed, ended, expires, status_after(transaction_status, transaction_on_expiry, expires, now)}
end
local spent = transaction_on_expiry and session_agent -- it counts in used_value already, and stays there if it has expired
local hold = session_agent and not spent and redis.call('ZSCORE', holds, transaction_id .. transaction_held_value)
if value == '' then
  value = transaction_held_value
end
if post_state ~= '' then
  redis.call('HSET', transaction, 'po', post_state)
elseif not spent then -- else the first write takes its hold away
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
end
local open, left = false, {} -- whether its hold still counts as leased, and what of that is left in its session
if spent then
  session_used_value = session_used_value - transaction_held_value
  open, left = settle_spent_hold(session, leases, spent_hold(transaction_id, transaction_held_value, type_name),
    transaction_held_value, session_leased_value, session_spent_holds)
end
local late = now >= tonumber(expires) or (session_agent and not hold and not open)
local counted_as = {}
local charged, overage = tonumber(value), 0
if session_agent then
  if hold then
    held = release_hold(session, holds, transaction_id .. transaction_held_value, held, session_refunds, session_leased_value)
  end
  local day, day_left = this_day(agent_restricted, now)
  -- What the hold counts: counted on this day; before on others, or before the limit was set.
  local counted, before = 0, (hold or spent) and transaction_held_value + 0 or 0
  if hold and session_day_holds then
    session_day_holds, counted = forget_hold(session, session_day_holds, transaction_id, day)
    before = transaction_held_value - counted
  end
  local counted_day, counted_value = day_of(spent and transaction_day_value)
  if day and counted_day == day then
    counted, before = counted_value, transaction_held_value - counted_value
  end
  -- A session that has observed may have used more than its limit: what was held is charged all the same.
  local room = math.max(session_value_limit - session_used_value - held, (hold or spent) and tonumber(transaction_held_value) or 0)
  local beyond = observes(session_restrictions, tonumber(session_used_actions), session_used_value + held + value,
    session_actions_limit, session_value_limit)
  if beyond then
    room = tonumber(value)
  end
  if session_ended_at or now >= tonumber(session_expires_at) then
    room = math.min(room, tonumber(transaction_held_value)) -- a session that is over spends what was held once, no more
  end
  if day and not beyond then
    room = math.min(room, before + counted + day_left)
  end
  charged = math.min(charged, room)
  overage = value - charged
  local counts = math.max(charged - before, 0)
  if day and counts > 0 then
    redis.call('HSET', transaction, 'dv', string.format('%d %d', day, counts)) -- what a rollback gives back to this day
  elseif spent and transaction_day_value then
    redis.call('HDEL', transaction, 'dv') -- what its begin counted is given back below
  end
  if day and counts ~= counted then
    local booked = book(agent_restricted, now, counts - counted)
    redis.call('HSET', agent, 'restricted', booked)
    note_agent_day(agent, events, audit, now, booked)
  end
  if day and counts > counted and counts - counted >= day_left then
    note_agent_limit(agent, events, audit, now, 'max_value_usd_per_day')
  end
  local used_value = string.format('%d', session_used_value + charged)
  if transaction_counted_type then
    count_read_type(session, type_name, type_counts, 0, charged - (spent and not open and transaction_held_value or 0),
      'v', used_value, unpack(left))
    counted_as = {'ut', transaction_counted_type .. 'c'}
  else
    redis.call('HSET', session, 'v', used_value, unpack(left))
  end
  if overage > 0 then
    local most = 9007199254740991 -- what a double counts exactly
    redis.call('HSET', session, 'ov', string.format('%d', math.min((session_total_overage or 0) + overage, most)))
  end
end
local charged_value, overage_text = string.format('%d', charged), string.format('%d', overage)
if late and now < tonumber(expires) then
  expires = committed -- its hold was released when its time was up, by a clock that has gone back since
end
redis.call('HSET', transaction, 'st', 'committed', 'v', charged_value, 'ov', overage_text, 'cm', committed, 'x', expires,
  unpack(counted_as))
local kept, ttl = tonumber(retention), retention
if redis.call('PTTL', transaction) < kept then -- the indexes last at least as long as it does
  --@block extend_ttl key=session_transactions
  --@block extend_ttl key=agent_transactions
end
redis.call('PEXPIRE', transaction, ttl)
if session_agent then -- what it used is not folded yet
  --@block extend_ttl key=session
end
local outcome = {'charged', charged_value, 'overage', overage_text}
if late then
  outcome = {'charged', charged_value, 'overage', overage_text, 'late', '1'}
end
record(events, audit, now, 'transaction.committed', 'session', transaction_session or '', 'transaction', transaction_id,
  unpack(outcome))
if session_agent then
  note_usage(session, events, audit, now, flags, tonumber(session_used_actions), tonumber(session_actions_limit),
    session_used_value + charged + held, tonumber(session_value_limit),
    name_of_value_limit(session_refunds, session_value_limit))
end
--@block transaction_state status='committed' charged=charged_value overage=overage_text committed=committed rolled='' reason='' post=post_state
--@  held=transaction_held_value
return {'ok', committed, ended, expires, state}
