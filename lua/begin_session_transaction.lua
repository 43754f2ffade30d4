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
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was counted or held
-- Writes: HSET and PEXPIRE session and transaction; ZADD and PEXPIRE holds, session_transactions and agent_transactions;
-- PEXPIRE agent_sessions; XADD events
--@include audit
--@include flags
local agent, session, holds, transaction, session_transactions, agent_transactions, agent_sessions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, session_id, transaction_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local value, lifetime, retention, audit, first_field = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]

--@block now
--@block agent_caller
--@block refuse_suspended

local a, n, ma, v, mv, h, x, e, q, hx, w, gb, lv, r = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'q', 'hx', 'w', 'gb', 'lv', 'r'))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
local flags = w or ''
--@block refuse_inactive
--@block refuse_suspended_session r=r
local used_n, max_n, used_v, max_v = n + 1, tonumber(ma), v + (h or 0) + value, tonumber(mv)
local limit = value_limit(gb, mv)
h = h or '0'
if used_n > max_n then
  note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
  --@block show_leased v=v h=h lv=lv
  return {'limit', 'max_actions', n, ma, v, mv, h, x, gb}
end
if used_v > max_v then
  note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
  --@block show_leased v=v h=h lv=lv
  return {'limit', limit, n, ma, v, mv, h, x, gb}
end

local created, expires = string.format('%d', now), string.format('%d', now + lifetime)
local sequence = string.format('%d', (q or 0) + 1)
redis.call('HSET', session, 'n', string.format('%d', used_n), 'h', string.format('%d', h + value), 'q', sequence,
  'hx', string.format('%d', math.min(tonumber(hx or math.huge), now + lifetime)))
redis.call('HSET', transaction, 'a', agent_id, 's', session_id, 'q', sequence, 'st', 'pending', 'hv', value,
  'b', created, 'x', expires, first_field, unpack(ARGV, 11))
redis.call('ZADD', holds, expires, transaction_id .. value)
local member = string.sub(transaction_id, 1, 14)
redis.call('ZADD', session_transactions, 0, member)
redis.call('ZADD', agent_transactions, 0, member)

-- The session and its sets stay at least as long as each of its transactions.
local kept = math.max(redis.call('PTTL', session), lifetime + retention)
local ttl = string.format('%d', kept)
redis.call('PEXPIRE', session, ttl)
redis.call('PEXPIRE', holds, ttl)
redis.call('PEXPIRE', transaction, string.format('%d', lifetime + retention))
--@block extend_ttl key=session_transactions
--@block extend_ttl key=agent_transactions
--@block extend_ttl key=agent_sessions
record(events, audit, now, 'transaction.begun', 'session', string.sub(session, -36), 'transaction', transaction_id,
  'held', value)
note_usage(session, events, audit, now, flags, used_n, max_n, used_v, max_v, limit)
return {'ok', transaction_id, sequence, created, expires}
