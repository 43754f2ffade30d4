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
-- KEYS[9] = agent_holds           zset ah:{cell}:<agent>
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
-- ARGV[10] = first_field          and what follows it: names and values of what the transaction only keeps, the first the
--                                 action type
--
-- Arguments: three name the caller, the others are stored or bound what is stored; packing would only hide them.
--
-- Reply:  {'ok', transaction_id, sequence, created, expires}  sequence from 1 on, times in ms since 1970
--         {'ok', transaction_id, sequence, created, expires, limit}  the same, where the limit would have refused if the session
--                                               did not observe
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}                   nothing was done: find_due_sessions.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; nothing was counted or held
--         {'agent_limit', limit, at}            as charge_session.lua; nothing was counted or held
-- Writes: HSET, HDEL and PEXPIRE session; HSET and PEXPIRE transaction; ZADD and PEXPIRE holds, session_transactions, agent_transactions and
-- agent_holds; HSET agent; PEXPIRE agent_sessions; XADD events
--@include action_types
--@include audit
--@include agent_day
--@include agent_limit_notes
--@include agent_limits
--@include counted_holds
--@include due_in_agent
--@include flags
--@include observe
--@include one_line
local agent, session, holds, transaction, session_transactions, agent_transactions, agent_sessions, events, agent_holds = unpack(KEYS)
local organization_id, agent_id, caller_family, session_id, transaction_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local value, lifetime, retention, audit, first_field = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9], ARGV[10]

--@block now
--@block agent_caller
--@block refuse_suspended

local a, n, ma, v, mv, h, x, e, q, hx, w, gb, lv, r, mp, hd, d = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'q', 'hx', 'w', 'gb', 'lv', 'r', 'mp', 'hd', agent_id))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
--@block refuse_day_over a=a d=d
--@block refuse_agent_holds_due
local flags = w or ''
--@block refuse_inactive
--@block refuse_suspended_session r=r
local used_n, max_n, used_v, max_v = n + 1, tonumber(ma), v + (h or 0) + value, tonumber(mv)
local limit = value_limit(gb, mv)
h = h or '0'
local over_p = mp and tonumber(value) > tonumber(mp) and 'max_value_usd_per_action'
local over_n, over_v = used_n > max_n and 'max_actions', used_v > max_v and limit
local over = over_p or over_n or over_v
if over and not observes(r, used_n, used_v, max_n, max_v) then
  over = refusing(r, over_p, over_n, over_v)
  note(session, events, audit, now, flags, over == over_p and 'P' or over == over_n and 'N' or 'V', 'session.limit_reached', 'limit', over)
  --@block show_leased v=v h=h lv=lv
  --@block show_delegated n=n v=v gb=gb r=r
  return {'limit', over, n, ma, v, mv, h, x, gb}
end
local counted, limited, at, over_day, over_minute, crossed
if agent_restricted then
  counted, limited, at, over_day, over_minute, crossed = within_limits(agent_restricted, now, 1, value, is_observing(r))
end
if limited and not counted then
  note_agent_limit(agent, events, audit, now, limited)
  return {'agent_limit', limited, at}
end
over = over or over_day or over_minute

local created, expires = string.format('%d', now), string.format('%d', now + lifetime)
local sequence = string.format('%d', (q or 0) + 1)
redis.call('HSET', session, 'n', string.format('%d', used_n), 'h', string.format('%d', h + value), 'q', sequence,
  'hx', string.format('%d', math.min(tonumber(hx or math.huge), now + lifetime)))
local action_type = (unpack(ARGV, 11))
local typed = count_type(session, one_line(action_type), 1, 0)
redis.call('HSET', transaction, 'a', agent_id, 's', session_id, 'q', sequence, 'st', 'pending', 'hv', value,
  'b', created, 'x', expires, 'ut', typed == '' and '0' or '1', first_field, unpack(ARGV, 11))
redis.call('ZADD', holds, expires, transaction_id .. value)
local member = string.sub(transaction_id, 1, 14)
redis.call('ZADD', session_transactions, 0, member)
redis.call('ZADD', agent_transactions, 0, member)

-- The session and its sets stay at least as long as each of its transactions.
local kept = math.max(redis.call('PTTL', session), lifetime + retention)
if r and string.find(r, '[kc]') then -- it stays until it is settled, see docs/budgets.md
  kept = math.max(math.max(x - now, lifetime) + retention, redis.call('PTTL', holds))
end
local ttl = string.format('%d', kept)
--@block extend_ttl key=session
redis.call('PEXPIRE', holds, ttl)
redis.call('PEXPIRE', transaction, string.format('%d', lifetime + retention))
--@block extend_ttl key=session_transactions
--@block extend_ttl key=agent_transactions
--@block extend_ttl key=agent_sessions
local day = counted and this_day(counted, now)
if counted then
  redis.call('HSET', agent, 'restricted', counted)
end
if day and value ~= '0' then
  count_hold(session, hd, transaction_id, day, value)
  enter_due(agent, agent_holds, session, expires)
  --@block extend_ttl key=agent_holds
end
record(events, audit, now, 'transaction.begun', 'session', string.sub(session, -36), 'transaction', transaction_id,
  'held', value)
if limited then
  note_agent_limit(agent, events, audit, now, limited)
end
if counted and (crossed or limited) then
  note_agent_day(agent, events, audit, now, counted)
end
flags = note_usage(session, events, audit, now, flags, used_n, max_n, used_v, max_v, limit)
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_p, over_n, over_v, over_day, over_minute)
  return {'ok', transaction_id, sequence, created, expires, over}
end
return {'ok', transaction_id, sequence, created, expires}
