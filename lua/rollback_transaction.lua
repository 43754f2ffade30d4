-- Rolls a transaction back: a pending one gives free what it holds, a committed one gives back what it charged. The action
-- stays counted, or begin and rollback would be a loop for free.
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
-- Reply:  {'ok', now, ended, x, state}  as commit_transaction.lua
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_pending', now, ended, x, st}
--         {'not_reversible'}            it is committed, and was begun as one that cannot be undone
--         {'token_lacks_scope'}         it is committed, and the access token may not undo that
--         {'scope_not_held', scopes}    it is committed, and its session holds none of them
-- Writes: HSET and PEXPIRE transaction; PEXPIRE session_transactions and agent_transactions; ZREM holds;
-- HSET and HDEL session; XADD events
--@include audit
--@include budget
--@include holds
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, reason, retention, audit, scopes = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local t = redis.call('HMGET', transaction, 'a', 's', 'st', 'hv', 'x', 'v', 'ov', 'cm', 'ir', 'po')
if t[1] ~= agent_id then
  return {'unknown_transaction'}
end
local s = redis.call('HMGET', session, 'a', 'v', 'h', 'e', 'ov', 'hx', 'sc', 'mv', 'gb')
local held = tonumber(s[3] or 0)
if s[6] and now >= tonumber(s[6]) then
  return {'holds_due'}
end
local rolled_back, ended = string.format('%.0f', now), session_end(t[2], s[1], s[4])
local pending = t[3] == 'pending' and ended == '' and now < tonumber(t[5])
if t[3] == 'committed' and caller_family ~= '' then
  local held_by_session, allowed = ' ' .. (s[7] or holder[4]) .. ' ', false
  for scope in string.gmatch(scopes, '%S+') do
    allowed = allowed or string.find(held_by_session, ' ' .. scope .. ' ', 1, true)
  end
  if scopes == '' then
    return {'token_lacks_scope'}
  elseif not allowed then
    return {'scope_not_held', scopes}
  end
end
if t[3] == 'committed' and t[9] then
  return {'not_reversible'}
end
if t[3] ~= 'committed' and not pending then
  return {'not_pending', rolled_back, ended, t[5], t[3]}
end

-- A hold that is gone was released when its time was up, by a clock that has gone back since.
if pending and s[1] and not redis.call('ZSCORE', holds, transaction_id .. t[4]) then
  return {'not_pending', rolled_back, ended, rolled_back, t[3]}
end

if not t[10] then
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
end
local given_back, v, ov = t[4] or '0', t[6] or '0', t[7] or '0'
if not t[2] then
  given_back = '0'
elseif pending and s[1] then
  release_hold(session, holds, transaction_id .. t[4], held, s[9])
elseif not pending then
  given_back = v
  if s[1] then
    local given_back_before, max_committed, max_value = read_budget(s[9], s[8])
    local most = 9007199254740991 -- what a double counts exactly
    local gb, mv = write_budget(string.format('%.0f', math.min(given_back_before + v, most)), max_committed, max_value)
    redis.call('HSET', session, 'v', string.format('%.0f', s[2] - v), 'gb', gb, 'mv', mv,
      'ov', string.format('%.0f', math.max((s[5] or 0) - ov, 0)))
  end
end
redis.call('HSET', transaction, 'st', 'rolled_back', 'rb', rolled_back)
if reason ~= '' then
  redis.call('HSET', transaction, 're', reason)
end
redis.call('PEXPIRE', transaction, retention)
if redis.call('PTTL', session_transactions) < tonumber(retention) then
  redis.call('PEXPIRE', session_transactions, retention)
end
if redis.call('PTTL', agent_transactions) < tonumber(retention) then
  redis.call('PEXPIRE', agent_transactions, retention)
end
record(events, audit, now, 'transaction.rolled_back', 'session', t[2] or '', 'transaction', transaction_id,
  'released', given_back)
return {'ok', rolled_back, ended, t[5], {'rolled_back', v, ov, t[8] or '', rolled_back, reason, t[10] or '', t[4]}}
