-- Begins a transaction in a session: counts one action and holds the value if, and only if, both fit. In the indexes its
-- id leaves out the last two bytes, which are the cell.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>
-- KEYS[3] = holds                 zset sh:{cell}:<session>
-- KEYS[4] = transaction           hash t:{cell}:<transaction>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
-- KEYS[6] = agent_transactions    zset at:{cell}:<agent>
-- KEYS[7] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[8] = events                stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id       16 bytes, of the access token
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = caller_family         'family:' and the 16-byte family id of the access token
-- ARGV[4] = session_id            16 bytes
-- ARGV[5] = transaction_id        16 bytes
-- ARGV[6] = value                 micro-USD to hold
-- ARGV[7] = lifetime              ms that it may be pending, and holds
-- ARGV[8] = retention             ms that it stays readable after that
-- ARGV[9] = audit                 see include/audit.lua
-- ARGV[10] = first_field          and what follows it: names and values of what the transaction only keeps
--
-- Reply:  {'ok', transaction_id, sequence, created, expires}  sequence from 1 on, times in ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was counted or held
-- Writes: HSET and PEXPIRE session and transaction; ZADD and PEXPIRE holds, session_transactions and agent_transactions;
-- PEXPIRE agent_sessions; XADD events
--@include audit
--@include marks
local agent, session, holds, transaction, session_transactions, agent_transactions, agent_sessions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, session_id, transaction_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local value, lifetime, retention, audit, first_field = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[2] or holder[3] then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'q', 'hx', 'w', 'gb')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
local held, due, marks = tonumber(s[6] or 0), tonumber(s[10] or math.huge), s[11] or ''
if now >= due then
  return {'holds_due'}
end
if s[8] or now >= tonumber(s[7]) then
  if not s[8] then
    note(session, events, audit, now, marks, 'x', 'session.expired')
  end
  return {'not_active', s[8] or '', '', s[7], string.format('%.0f', now)}
end
local n, max_n, max_v, gb = s[2] + 1, tonumber(s[3]), tonumber(s[5]), s[12]
local limit = value_limit(gb, s[5])
if n > max_n then
  note(session, events, audit, now, marks, 'N', 'session.limit_reached', 'limit', 'max_actions')
  return {'limit', 'max_actions', s[2], s[3], s[4], s[5], string.format('%.0f', held), s[7], gb}
end
if s[4] + held + value > max_v then
  note(session, events, audit, now, marks, 'V', 'session.limit_reached', 'limit', limit)
  return {'limit', limit, s[2], s[3], s[4], s[5], string.format('%.0f', held), s[7], gb}
end

held = held + value
local created, expires = string.format('%.0f', now), string.format('%.0f', now + lifetime)
local sequence = string.format('%.0f', (s[9] or 0) + 1)
redis.call('HSET', session, 'n', string.format('%.0f', n), 'h', string.format('%.0f', held), 'q', sequence,
  'hx', string.format('%.0f', math.min(due, now + lifetime)))
redis.call('HSET', transaction, 'a', agent_id, 's', session_id, 'q', sequence, 'st', 'pending', 'hv', value,
  'b', created, 'x', expires, first_field, unpack(ARGV, 11))
redis.call('ZADD', holds, expires, transaction_id .. value)
local member = string.sub(transaction_id, 1, 14)
redis.call('ZADD', session_transactions, 0, member)
redis.call('ZADD', agent_transactions, 0, member)

-- The session stays for as long as one of its transactions can be read, and so do the sets that are read with it.
local kept = math.max(redis.call('PTTL', session), lifetime + retention)
local ttl = string.format('%.0f', kept)
redis.call('PEXPIRE', session, ttl)
redis.call('PEXPIRE', holds, ttl)
redis.call('PEXPIRE', transaction, string.format('%.0f', lifetime + retention))
if redis.call('PTTL', session_transactions) < kept then
  redis.call('PEXPIRE', session_transactions, ttl)
end
if redis.call('PTTL', agent_transactions) < kept then
  redis.call('PEXPIRE', agent_transactions, ttl)
end
if redis.call('PTTL', agent_sessions) < kept then
  redis.call('PEXPIRE', agent_sessions, ttl)
end
record(events, audit, now, 'transaction.begun', 'session', string.sub(session, -36), 'transaction', transaction_id,
  'held', value)
note_usage(session, events, audit, now, marks, n, max_n, s[4] + held, max_v, limit)
return {'ok', transaction_id, sequence, created, expires}
