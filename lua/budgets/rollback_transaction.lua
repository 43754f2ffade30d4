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
--
-- ARGV[1] = organization_id       16 bytes, of the caller
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = transaction_id        16 bytes
-- ARGV[5] = reason                '' for none
-- ARGV[6] = retention             ms that it stays readable from now
-- ARGV[7] = audit                 see include/audit.lua
-- ARGV[8] = scopes                of the access token, separated by single spaces: each lets it undo a commit, if the session
--                                 holds it too; '' for none
--
-- Arguments: three name the caller, two what to roll back and why; the scopes decide whether a commit may be undone.
--
-- Reply:  {'ok', now, ended, x, state}  as commit_transaction.lua
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_pending', now, ended, x, st}
--         {'not_reversible'}            it is committed, and was begun as one that cannot be undone
--         {'token_lacks_scope'}         it is committed, and the access token may not undo that
--         {'scope_not_held', scopes}    it is committed, and its session holds none of them
-- Writes: HSET and PEXPIRE transaction; PEXPIRE session, session_transactions and agent_transactions; ZREM holds;
-- HSET and HDEL session; HSET agent; XADD events
--@include action_types
--@include audit
--@include agent_day
--@include budget
--@include counted_holds
--@include holds
--@include one_line
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, reason, retention, audit, scopes = unpack(ARGV)

--@block now
--@block either_caller_with_both

local t_a, t_s, t_st, t_hv, t_x, t_v, t_ov, t_cm, t_ir, t_po, t_dv, t_ty, t_ut = unpack(redis.call('HMGET', transaction,
  'a', 's', 'st', 'hv', 'x', 'v', 'ov', 'cm', 'ir', 'po', 'dv', 'ty', 'ut'))
if t_a ~= agent_id then
  return {'unknown_transaction'}
end
local s_a, s_v, s_h, s_e, s_ov, s_hx, s_sc, s_mv, s_gb, s_lv, s_hd, s_cl, s_d = unpack(redis.call('HMGET', session,
  'a', 'v', 'h', 'e', 'ov', 'hx', 'sc', 'mv', 'gb', 'lv', 'hd', 'cl', agent_id))
--@block refuse_holds_due hx=s_hx
--@block refuse_day_over a=s_a d=s_d
local rolled_back, ended = string.format('%d', now), session_end(t_s, s_a, s_e)
local pending = t_st == 'pending' and ended == '' and now < tonumber(t_x)
if t_st == 'committed' and caller_family ~= '' then
  local held_by_session, held_by_agent, allowed = ' ' .. (s_sc or agent_scopes) .. ' ', ' ' .. agent_scopes .. ' ', false
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
if t_st == 'committed' and t_ir then
  return {'not_reversible'}
end
if t_st ~= 'committed' and not pending then
  return {'not_pending', rolled_back, ended, t_x, t_st}
end

-- A hold that is gone was released when its time was up, by a clock that has gone back since.
if pending and s_a and not redis.call('ZSCORE', holds, transaction_id .. t_hv) then
  return {'not_pending', rolled_back, ended, rolled_back, t_st}
end

if not t_po then
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
end
local given_back, v, ov = t_hv or '0', t_v or '0', t_ov or '0'
local day, counted = this_day(agent_restricted, now), 0
if not t_s then
  given_back = '0'
elseif pending and s_a then
  release_hold(session, holds, transaction_id .. t_hv, tonumber(s_h or 0), s_gb, s_lv)
  if s_hd then
    s_hd, counted = forget_hold(session, s_hd, transaction_id, day)
  end
elseif not pending then
  given_back = s_cl and '0' or v -- closed books change no more
  if s_a and not s_cl then
    local given_back_before, max_committed, max_value = read_budget(s_gb, s_mv)
    local most = 9007199254740991 -- what a double counts exactly
    local gb, mv = write_budget(string.format('%d', math.min(given_back_before + v, most)), max_committed, max_value)
    redis.call('HSET', session, 'v', string.format('%d', s_v - v), 'gb', gb, 'mv', mv,
      'ov', string.format('%d', math.max((s_ov or 0) - ov, 0)))
    count_type(session, t_ut == '1c' and one_line(t_ty) or '', 0, 0 - v)
    local counted_day, value = string.match(t_dv or '', '^(%d+) (%d+)$')
    if day and counted_day and counted_day + 0 == day then
      counted = value + 0
    end
  end
end
if day and counted > 0 then
  redis.call('HSET', agent, 'restricted', book(agent_restricted, now, -counted))
end
redis.call('HSET', transaction, 'st', 'rolled_back', 'rb', rolled_back)
if reason ~= '' then
  redis.call('HSET', transaction, 're', reason)
end
local kept, ttl = tonumber(retention), retention
redis.call('PEXPIRE', transaction, ttl)
if s_a then -- what it gave back is not folded yet
  --@block extend_ttl key=session
end
--@block extend_ttl key=session_transactions
--@block extend_ttl key=agent_transactions
record(events, audit, now, 'transaction.rolled_back', 'session', t_s or '', 'transaction', transaction_id,
  'released', given_back)
local cm, po = t_cm or '', t_po or ''
--@block transaction_state st='rolled_back' v=v ov=ov cm=cm rb=rolled_back re=reason po=po hv=t_hv
return {'ok', rolled_back, ended, t_x, state}
