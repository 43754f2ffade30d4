-- Rolls a transaction back: a pending one releases what it holds, a committed one gives back what it charged. The
-- action stays counted, so that a loop of begin and rollback is not free. What counted in the agent's day is given back on
-- that day only.
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
-- ARGV[1] = organization_id       16 bytes, of the caller
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token; '' when an API key
--                                 calls, 'gateway' when that does
-- ARGV[4] = transaction_id        16 bytes
-- ARGV[5] = reason                '' for none
-- ARGV[6] = retention             ms that it stays readable from now
-- ARGV[7] = audit                 see include/audit.lua
-- ARGV[8] = scopes                of the access token, separated by single spaces: each lets it undo a commit, if the session
--                                 holds it too; '' for none
--
-- Arguments: three name the caller, two what to roll back and why; the scopes decide whether a commit may be undone.
--
-- Reply:  {'ok', now, ended, expires_at, state}  as commit_transaction.lua
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}       also to the gateway, if it does not hold it
--         {'held_by_gateway'}           no agent settles or changes it
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_pending', now, ended, expires_at, st}
--         {'not_reversible'}            it is committed, and was begun as one that cannot be undone
--         {'token_lacks_scope'}         it is committed, and the access token may not undo that
--         {'scope_not_held', scopes}    it is committed, and its session holds none of them
-- Writes: HSET and PEXPIRE transaction; PEXPIRE session, session_transactions and agent_transactions; ZREM holds and leases;
-- HSET and HDEL session; HSET agent; XADD events
--@include action_types
--@include audit
--@include agent_day
--@include budget
--@include counted_holds
--@include holds
--@include one_line
--@include spent_holds
--@include settle_spent_hold
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events, leases = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, reason, retention, audit, scopes = unpack(ARGV)

--@block now
--@block gateway_caller
--@block either_caller_with_both session=session

--@read transaction transaction_agent transaction_session transaction_status transaction_held_value transaction_expires_at
--@  transaction_charged_value transaction_overage transaction_committed_at transaction_irreversible transaction_post_state
--@  transaction_day_value transaction_action_type transaction_counted_type transaction_on_expiry transaction_held_by_gateway
if transaction_agent ~= agent_id then
  return {'unknown_transaction'}
end
--@block refuse_holder
--@read session session_agent session_used_value session_held_value session_ended_at session_total_overage session_holds_due
--@  session_own_scopes session_value_limit session_refunds session_leased_value session_spent_holds session_day_holds session_closed_at
--@  day_end=agent_id
--@block refuse_holds_due due=session_holds_due
--@block refuse_day_over agent=session_agent ends=day_end
local rolled_back, ended = string.format('%d', now), session_end(transaction_session, session_agent, session_ended_at,
  transaction_on_expiry)
local pending = transaction_status == 'pending' and ended == '' and now < tonumber(transaction_expires_at)
local spent = transaction_on_expiry and transaction_status == 'pending'
local spent_type = transaction_counted_type and string.sub(transaction_counted_type, 1, 1) == '1' and one_line(transaction_action_type)
  or ''
local open = pending and spent and spent_hold(transaction_id, transaction_held_value, spent_type)
if open and session_agent and not redis.call('ZSCORE', leases, open) then
  pending = false -- it was spent when its time was up, by a clock that has gone back since
end
if spent and not pending then -- what it held was spent
  transaction_status, transaction_charged_value, transaction_committed_at = 'committed', transaction_held_value, transaction_expires_at
  transaction_counted_type = transaction_counted_type and transaction_counted_type .. 'c'
end
if transaction_status == 'committed' and caller_family ~= '' then
  local held_by_session, held_by_agent, allowed = ' ' .. (session_own_scopes or agent_scopes) .. ' ', ' ' .. agent_scopes .. ' ',
    false
  for scope in string.gmatch(scopes, '%S+') do
    local wanted = ' ' .. scope .. ' '
    allowed = allowed or string.find(held_by_session, wanted, 1, true) and string.find(held_by_agent, wanted, 1, true)
  end
  if scopes == '' then
    return {'token_lacks_scope'}
  elseif not allowed then
    return {'scope_not_held', scopes}
  end
end
if transaction_status == 'committed' and transaction_irreversible then
  return {'not_reversible'}
end
if transaction_status ~= 'committed' and not pending then
  return {'not_pending', rolled_back, ended, transaction_expires_at, transaction_status}
end

-- A hold that is gone was released when its time was up, by a clock that has gone back since.
if pending and not open and session_agent and not redis.call('ZSCORE', holds, transaction_id .. transaction_held_value) then
  return {'not_pending', rolled_back, ended, rolled_back, transaction_status}
end

if not transaction_post_state then
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
end
local given_back, charged_value, overage = transaction_held_value or '0', transaction_charged_value or '0', transaction_overage
  or '0'
local day, counted = this_day(agent_restricted, now), 0
local counted_day, counted_value = day_of(transaction_day_value)
if not transaction_session then
  given_back = '0'
elseif open and pending and session_agent then
  local _, left = settle_spent_hold(session, leases, open, transaction_held_value, session_leased_value, session_spent_holds)
  redis.call('HSET', session, 'v', string.format('%d', session_used_value - transaction_held_value), unpack(left))
  counted = counted_day == day and counted_value or 0
elseif pending and session_agent then
  release_hold(session, holds, transaction_id .. transaction_held_value, tonumber(session_held_value or 0), session_refunds,
    session_leased_value)
  if session_day_holds then
    session_day_holds, counted = forget_hold(session, session_day_holds, transaction_id, day)
  end
elseif not pending then
  given_back = session_closed_at and '0' or charged_value -- a closed session changes no more
  if session_agent and not session_closed_at then
    local given_back_before, max_committed, max_value = read_budget(session_refunds, session_value_limit)
    local most = 9007199254740991 -- what a double counts exactly
    local refunds, value_limit = write_budget(string.format('%d', math.min(given_back_before + charged_value, most)), max_committed,
      max_value)
    redis.call('HSET', session, 'v', string.format('%d', session_used_value - charged_value), 'gb', refunds, 'mv', value_limit,
      'ov', string.format('%d', math.max((session_total_overage or 0) - overage, 0)))
    count_type(session, transaction_counted_type == '1c' and one_line(transaction_action_type) or '', 0, 0 - charged_value)
    counted = counted_day == day and counted_value or 0
  end
end
if day and counted > 0 then
  redis.call('HSET', agent, 'restricted', book(agent_restricted, now, -counted))
end
redis.call('HSET', transaction, 'st', 'rolled_back', 'rb', rolled_back)
if spent and not pending then
  redis.call('HSET', transaction, 'v', charged_value, 'ov', overage, 'cm', transaction_committed_at,
    'ut', transaction_counted_type or '0c')
end
if reason ~= '' then
  redis.call('HSET', transaction, 're', reason)
end
local kept, ttl = tonumber(retention), retention
redis.call('PEXPIRE', transaction, ttl)
if session_agent then -- what it gave back is not folded yet
  --@block extend_ttl key=session
end
--@block extend_ttl key=session_transactions
--@block extend_ttl key=agent_transactions
record(events, audit, now, 'transaction.rolled_back', 'session', transaction_session or '', 'transaction', transaction_id,
  'released', given_back)
local committed_at, post_state = transaction_committed_at or '', transaction_post_state or ''
--@block transaction_state status='rolled_back' charged=charged_value overage=overage committed=committed_at rolled=rolled_back reason=reason post=post_state
--@  held=transaction_held_value
return {'ok', rolled_back, ended, transaction_expires_at, state}
