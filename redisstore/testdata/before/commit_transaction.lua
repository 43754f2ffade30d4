-- Commits a transaction that is pending or has expired. Releases what it holds and charges what it cost, as far as the
-- session's limit allows now. The rest is recorded as overage, because the action has happened. An expired transaction
-- is committed late: its cm is not before its x.
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
-- Arguments: three name the caller, two what to commit; the outcome, the retention and the audit differ by call.
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
-- Appends to an agent's audit trail: what happened, when, by whom and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key' or 'agent'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%a+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%.0f', now), 'actor', actor,
    'request', request, ...)
end
-- Records that a session holds nothing. With max_committed (include/budget.lua) h stays, as 0.
local function hold_nothing(session, gb)
  redis.call('HDEL', session, 'h', 'hx')
  if gb and string.find(gb, ' ', 1, true) then
    redis.call('HSET', session, 'h', '0')
  end
end

-- Takes one hold, which its transaction is done with, from its session with this gb; returns what is held after it. A hold
-- is a member of its zset by expiry: the transaction's 16 bytes and the value in micro-USD.
local function release_hold(session, holds, hold, held, gb)
  redis.call('ZREM', holds, hold)
  held = held - tonumber(string.sub(hold, 17))
  if redis.call('ZCARD', holds) == 0 then
    hold_nothing(session, gb)
  else
    redis.call('HSET', session, 'h', string.format('%.0f', held))
  end
  return held
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
-- Returns what ended a transaction's session, as far as the transaction is concerned: the time, 'gone' when its session
-- is no longer kept, '' for nothing. The end of a session rolls its pending transactions back.
local function session_end(session_id, s_agent, ended)
  if ended then
    return ended
  elseif session_id and not s_agent then
    return 'gone'
  end
  return ''
end
local agent, session, holds, transaction, session_transactions, agent_transactions, events = unpack(KEYS)
local organization_id, agent_id, caller_family, transaction_id, value, post_state, retention, audit = unpack(ARGV)

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

local t_a, t_s, t_st, t_hv, t_x = unpack(redis.call('HMGET', transaction, 'a', 's', 'st', 'hv', 'x'))
if t_a ~= agent_id then
  return {'unknown_transaction'}
end
local s_a, s_n, s_ma, s_v, s_mv, s_h, s_e, s_ov, s_hx, s_w, s_x, s_gb = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'e', 'ov', 'hx', 'w', 'x', 'gb'))
if s_hx and now >= tonumber(s_hx) then
  return {'holds_due'}
end
local held, flags = tonumber(s_h or 0), s_w or ''
local committed, ended, expires = string.format('%.0f', now), session_end(t_s, s_a, s_e), t_x
if t_st ~= 'pending' or ended == 'gone' or (ended ~= '' and tonumber(ended) < tonumber(expires)) then
  return {'not_pending', committed, ended, expires, t_st}
end
local hold = s_a and redis.call('ZSCORE', holds, transaction_id .. t_hv)
local late = now >= tonumber(expires) or (s_a and not hold)

if value == '' then
  value = t_hv
end
if post_state == '' then
  redis.call('HDEL', transaction, '') -- goes on when Redis is full, see lua.go; a state may be large, and waits
else
  redis.call('HSET', transaction, 'po', post_state)
end
local charged, overage = tonumber(value), 0
if s_a then
  if hold then
    held = release_hold(session, holds, transaction_id .. t_hv, held, s_gb)
  end
  local room = s_mv - s_v - held
  if s_e or now >= tonumber(s_x) then
    room = math.min(room, tonumber(t_hv)) -- a session that is over spends what was held once, no more
  end
  charged = math.min(charged, room)
  overage = value - charged
  redis.call('HSET', session, 'v', string.format('%.0f', s_v + charged))
  if overage > 0 then
    local most = 9007199254740991 -- what a double counts exactly
    redis.call('HSET', session, 'ov', string.format('%.0f', math.min((s_ov or 0) + overage, most)))
  end
end
local v, ov = string.format('%.0f', charged), string.format('%.0f', overage)
if late and now < tonumber(expires) then
  expires = committed -- its hold was released when its time was up, by a clock that has gone back since
end
redis.call('HSET', transaction, 'st', 'committed', 'v', v, 'ov', ov, 'cm', committed, 'x', expires)
local kept, ttl = tonumber(retention), retention
redis.call('PEXPIRE', transaction, ttl)
if redis.call('PTTL', session_transactions) < kept then
  redis.call('PEXPIRE', session_transactions, ttl)
end
if redis.call('PTTL', agent_transactions) < kept then
  redis.call('PEXPIRE', agent_transactions, ttl)
end
local outcome = {'charged', v, 'overage', ov}
if late then
  outcome = {'charged', v, 'overage', ov, 'late', '1'}
end
record(events, audit, now, 'transaction.committed', 'session', t_s or '', 'transaction', transaction_id, unpack(outcome))
if s_a then
  note_usage(session, events, audit, now, flags, tonumber(s_n), tonumber(s_ma), s_v + charged + held, tonumber(s_mv),
    value_limit(s_gb, s_mv))
end
local state = {'committed', v, ov, committed, '', '', post_state, t_hv}
return {'ok', committed, ended, expires, state}
