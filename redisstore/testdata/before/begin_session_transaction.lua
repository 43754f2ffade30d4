-- Begins a transaction in a session: counts one action and holds the value if both fit, or changes nothing. The indexes
-- leave out the last two bytes of its id, which are the cell.
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
-- Arguments: three name the caller, the others are stored or bound what is stored; packing would only hide them.
--
-- Reply:  {'ok', transaction_id, sequence, created, expires}  sequence from 1 on, times in ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was counted or held
-- Writes: HSET and PEXPIRE session and transaction; ZADD and PEXPIRE holds, session_transactions and agent_transactions;
-- PEXPIRE agent_sessions; XADD events
-- Appends to an agent's audit trail: what happened, when, by whom and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key' or 'agent'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%a+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%.0f', now), 'actor', actor,
    'request', request, ...)
end
-- Notes in the audit trail what a session's flags do not have yet; returns the flags after it. A flag is a letter: x the
-- session was observed expired; n and v 80 % of max_actions and of the limit of value are used; N and V all of it is used,
-- or the session has refused something.
local function note(session, events, audit, now, flags, flag, what, ...)
  if string.find(flags, flag, 1, true) then
    return flags
  end
  redis.call('HSET', session, 'w', flags .. flag)
  record(events, audit, now, what, 'session', string.sub(session, -36), ...)
  return flags .. flag
end

-- Names the limit that a session's mv is, for its gb (include/budget.lua).
local function value_limit(gb, mv)
  local max_value = gb and string.match(gb, ' (%d+)$')
  if max_value and tonumber(mv) < tonumber(max_value) then
    return 'max_committed_usd'
  end
  return 'max_value_usd'
end

-- Notes how far the limits are used: n of max_n actions; value, used and held, of max_value, which is value_limit.
local function note_usage(session, events, audit, now, flags, n, max_n, value, max_value, limit)
  if n * 5 >= max_n * 4 then
    flags = note(session, events, audit, now, flags, 'n', 'session.limit_warning', 'limit', 'max_actions')
  end
  if n >= max_n then
    flags = note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
  end
  if value > 0 and value * 5 >= max_value * 4 then
    flags = note(session, events, audit, now, flags, 'v', 'session.limit_warning', 'limit', limit)
  end
  if value > 0 and value >= max_value then
    flags = note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
  end
  return flags
end
local agent, session, holds, transaction, session_transactions, agent_transactions, agent_sessions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, session_id, transaction_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local value, lifetime, retention, audit, first_field = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local agent_organization, agent_revoked, caller_revoked = unpack(redis.call('HMGET', agent, 'organization', 'revoked',
  caller_family))
if agent_organization ~= organization_id then
  return {'unknown_agent'}
end
if agent_revoked or caller_revoked then
  return {'invalid_token'}
end

local a, n, ma, v, mv, h, x, e, q, hx, w, gb = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'q', 'hx', 'w', 'gb'))
if a ~= agent_id then
  return {'unknown_session'}
end
if hx and now >= tonumber(hx) then
  return {'holds_due'}
end
local flags = w or ''
if e or agent_revoked or now >= tonumber(x) then
  if not e and not agent_revoked then
    note(session, events, audit, now, flags, 'x', 'session.expired')
  end
  return {'not_active', e or '', agent_revoked or '', x, string.format('%.0f', now)}
end
local used_n, max_n, used_v, max_v = n + 1, tonumber(ma), v + (h or 0) + value, tonumber(mv)
local limit = value_limit(gb, mv)
h = h or '0'
if used_n > max_n then
  note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
  return {'limit', 'max_actions', n, ma, v, mv, h, x, gb}
end
if used_v > max_v then
  note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
  return {'limit', limit, n, ma, v, mv, h, x, gb}
end

local created, expires = string.format('%.0f', now), string.format('%.0f', now + lifetime)
local sequence = string.format('%.0f', (q or 0) + 1)
redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'h', string.format('%.0f', h + value), 'q', sequence,
  'hx', string.format('%.0f', math.min(tonumber(hx or math.huge), now + lifetime)))
redis.call('HSET', transaction, 'a', agent_id, 's', session_id, 'q', sequence, 'st', 'pending', 'hv', value,
  'b', created, 'x', expires, first_field, unpack(ARGV, 11))
redis.call('ZADD', holds, expires, transaction_id .. value)
local member = string.sub(transaction_id, 1, 14)
redis.call('ZADD', session_transactions, 0, member)
redis.call('ZADD', agent_transactions, 0, member)

-- The session and its sets stay at least as long as each of its transactions.
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
note_usage(session, events, audit, now, flags, used_n, max_n, used_v, max_v, limit)
return {'ok', transaction_id, sequence, created, expires}
