-- Changes what a pending transaction holds and until when, if the value fits. Without a session it holds nothing: only its
-- fields change.
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
-- Reply:  {'ok', now, ended, x, state, x_before}  as commit_transaction.lua; x_before what x was until now
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_pending', now, ended, x, st}
--         {'not_active', ended, revoked, x, now}    of the session; in ms since 1970, '' for what has not happened
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was changed
-- Writes: HSET and PEXPIRE session and transaction; ZADD, ZREM and PEXPIRE holds; PEXPIRE session_transactions,
-- agent_transactions and agent_sessions; XADD events
--@include audit
--@include marks
--@include states
local agent, session, holds, transaction, session_transactions, agent_transactions, events, agent_sessions = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, lifetime, retention, audit = unpack(ARGV)

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
local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'hx', 'w', 'gb')
local held, due, marks = tonumber(s[6] or 0), tonumber(s[9] or math.huge), s[10] or ''
if now >= due then
  return {'holds_due'}
end
local changed_at, ended = string.format('%.0f', now), session_end(t[2], s[1], s[8])
if t[3] ~= 'pending' or ended ~= '' or now >= tonumber(t[5]) then
  return {'not_pending', changed_at, ended, t[5], t[3]}
end
-- A hold that is gone was released when its time was up, by a clock that has gone back since.
if s[1] and not redis.call('ZSCORE', holds, transaction_id .. t[4]) then
  return {'not_pending', changed_at, ended, changed_at, t[3]}
end
if s[1] and now >= tonumber(s[7]) then
  note(session, events, audit, now, marks, 'x', 'session.expired')
  return {'not_active', '', '', s[7], changed_at}
end

local expires = t[5]
if value == '' then
  value = t[4]
end
if lifetime ~= '' then
  expires = string.format('%.0f', now + lifetime)
end
if s[1] then
  local limit, after = value_limit(s[11], s[5]), held - t[4] + value
  if s[4] + after > tonumber(s[5]) then
    note(session, events, audit, now, marks, 'V', 'session.limit_reached', 'limit', limit)
    return {'limit', limit, s[2], s[3], s[4], s[5], string.format('%.0f', held), s[7], s[11]}
  end
  redis.call('HSET', session, 'h', string.format('%.0f', after),
    'hx', string.format('%.0f', math.min(due, tonumber(expires))))
  redis.call('ZADD', holds, expires, transaction_id .. value)
  if value ~= t[4] then
    redis.call('ZREM', holds, transaction_id .. t[4]) -- after the other, because an empty set loses its TTL
  end
end
redis.call('HSET', transaction, 'hv', value, 'x', expires)

-- What is read with the transaction stays for as long as it does.
local kept = expires - now + retention
local ttl = string.format('%.0f', kept)
if redis.call('PTTL', transaction) < kept then
  redis.call('PEXPIRE', transaction, ttl)
end
if redis.call('PTTL', agent_transactions) < kept then
  redis.call('PEXPIRE', agent_transactions, ttl)
end
if s[1] then
  if redis.call('PTTL', session) < kept then
    redis.call('PEXPIRE', session, ttl)
  end
  if redis.call('PTTL', holds) < kept then
    redis.call('PEXPIRE', holds, ttl)
  end
  if redis.call('PTTL', session_transactions) < kept then
    redis.call('PEXPIRE', session_transactions, ttl)
  end
  if redis.call('PTTL', agent_sessions) < kept then
    redis.call('PEXPIRE', agent_sessions, ttl)
  end
end
record(events, audit, now, 'transaction.hold_changed', 'session', t[2] or '', 'transaction', transaction_id,
  'held', s[1] and value or '0', 'expires', expires)
if s[1] then
  note_usage(session, events, audit, now, marks, tonumber(s[2]), tonumber(s[3]), s[4] + held - t[4] + value, tonumber(s[5]),
    value_limit(s[11], s[5]))
end
return {'ok', changed_at, ended, expires, {'pending', '', '', '', '', '', '', value}, t[5]}
