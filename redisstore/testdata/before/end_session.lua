-- Ends an active session, which rolls its pending transactions back: the script releases what they hold, and their
-- status follows from this end (see transactionStatus). Ending again changes nothing and returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = holds            zset sh:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = retention        ms that the session stays readable from now
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', ended}                         ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
-- Writes: HSET, HDEL and PEXPIRE session; XADD events, one for each of the first 100 transactions; UNLINK holds
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
local agent, session, holds, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, caller_family, retention, audit = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local agent_fields = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
local agent_organization, agent_revoked, caller_revoked = agent_fields[1], agent_fields[2], agent_fields[3]
if agent_organization ~= organization_id then
  return {'unknown_agent'}
end
if caller_revoked or (agent_revoked and caller_family ~= '') then
  return {'invalid_token'}
end

local a, x, e, h, hx, w = unpack(redis.call('HMGET', session, 'a', 'x', 'e', 'h', 'hx', 'w'))
if a ~= agent_id then
  return {'unknown_session'}
end
if e then
  return {'ok', e}
end
if hx and now >= tonumber(hx) then
  return {'holds_due'}
end
local ended = string.format('%.0f', now)
if agent_revoked or now >= tonumber(x) then
  if not agent_revoked then
    redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
    note(session, events, audit, now, w or '', 'x', 'session.expired')
  end
  return {'not_active', '', agent_revoked or '', x, ended}
end

redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', session, 'e', ended)
redis.call('HDEL', session, 'h', 'hx')
redis.call('PEXPIRE', session, retention)
if hx then
  for _, hold in ipairs(redis.call('ZRANGE', holds, 0, 99)) do
    record(events, audit, now, 'transaction.rolled_back', 'session', string.sub(session, -36),
      'transaction', string.sub(hold, 1, 16), 'released', string.sub(hold, 17))
  end
  redis.call('UNLINK', holds) -- however many they are
end
record(events, audit, now, 'session.ended', 'session', string.sub(session, -36), 'released', h or '0')
return {'ok', ended}
