-- Commits a transaction that is pending or has expired. What it holds is released, and what it cost is charged as far as
-- the session's limit allows now. The rest is recorded as overage, because the action has happened. An expired one is
-- committed late: cm is then not before x.
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
-- Reply:  {'ok', now, ended, x, state}  now and x, when it would have expired or has, in ms since 1970; ended as
--                                       include/states.lua says; state an array of st, v, ov, cm, rb, re, po, hv
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_pending', now, ended, x, st}
-- Writes: HSET and PEXPIRE transaction; PEXPIRE session_transactions and agent_transactions; ZREM holds;
-- HSET and HDEL session; XADD events
--@include audit
--@include holds
--@include marks
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, post_state, retention, audit = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[2] or holder[3] then
  return {'invalid_token'}
end

local t = redis.call('HMGET', transaction, 'a', 's', 'st', 'hv', 'x')
if t[1] ~= agent_id then
  return {'unknown_transaction'}
end
local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'e', 'ov', 'hx', 'w', 'x', 'gb')
local held, marks = tonumber(s[6] or 0), s[10] or ''
if s[9] and now >= tonumber(s[9]) then
  return {'holds_due'}
end
local committed, ended, expires = string.format('%.0f', now), session_end(t[2], s[1], s[7]), t[5]
if t[3] ~= 'pending' or ended == 'gone' or (ended ~= '' and tonumber(ended) < tonumber(expires)) then
  return {'not_pending', committed, ended, expires, t[3]}
end
local hold = s[1] and redis.call('ZSCORE', holds, transaction_id .. t[4])
local late = now >= tonumber(expires) or (s[1] and not hold)

if value == '' then
  value = t[4]
end
if post_state == '' then
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
else
  redis.call('HSET', transaction, 'po', post_state)
end
local charged, overage = tonumber(value), 0
if s[1] then
  if hold then
    held = release_hold(session, holds, transaction_id .. t[4], held, s[12])
  end
  local room = s[5] - s[4] - held
  if s[7] or now >= tonumber(s[11]) then
    room = math.min(room, tonumber(t[4])) -- a session that is over spends what was held once, no more
  end
  charged = math.min(charged, room)
  overage = value - charged
  redis.call('HSET', session, 'v', string.format('%.0f', s[4] + charged))
  if overage > 0 then
    local most = 9007199254740991 -- what a double counts exactly
    redis.call('HSET', session, 'ov', string.format('%.0f', math.min((s[8] or 0) + overage, most)))
  end
end
local v, ov = string.format('%.0f', charged), string.format('%.0f', overage)
if late and now < tonumber(expires) then
  expires = committed -- its hold was released when its time was up, by a clock that has gone back since
end
redis.call('HSET', transaction, 'st', 'committed', 'v', v, 'ov', ov, 'cm', committed, 'x', expires)
redis.call('PEXPIRE', transaction, retention)
if redis.call('PTTL', session_transactions) < tonumber(retention) then
  redis.call('PEXPIRE', session_transactions, retention)
end
if redis.call('PTTL', agent_transactions) < tonumber(retention) then
  redis.call('PEXPIRE', agent_transactions, retention)
end
local outcome = {'charged', v, 'overage', ov}
if late then
  outcome = {'charged', v, 'overage', ov, 'late', '1'}
end
record(events, audit, now, 'transaction.committed', 'session', t[2] or '', 'transaction', transaction_id, unpack(outcome))
if s[1] then
  note_usage(session, events, audit, now, marks, tonumber(s[2]), tonumber(s[3]), s[4] + charged + held, tonumber(s[5]),
    value_limit(s[12], s[5]))
end
return {'ok', committed, ended, expires, {'committed', v, ov, committed, '', '', post_state, t[4]}}
