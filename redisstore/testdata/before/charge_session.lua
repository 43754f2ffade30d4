-- Charges a session: counts actions and value if all of it fits, or changes nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = count            actions
-- ARGV[5] = value            micro-USD
-- ARGV[6] = scope            that the session must hold, '' for none
-- ARGV[7] = audit            see include/audit.lua
--
-- Arguments: all of them bear on every charge; taking a packed one apart would cost more than sending them.
--
-- Reply:  {'ok', n, ma, v, mv, h, x, gb}        actions and their limit; value, its limit and what is held, in
--                                               micro-USD; expiry in ms since 1970; gb as include/budget.lua says, nil
--                                               for none
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'scope_not_held', scope}
--         {'limit', limit, n, ma, v, mv, h, x, gb}  limit is max_actions, max_value_usd or max_committed_usd; nothing was
--                                               charged
-- Writes: HSET session; XADD events for what is first observed
--
-- It runs before every step of every agent. So it reads what few charges need (hx, gb, w, scopes) only for those, and leaves
-- it to arithmetic to make numbers of strings: tonumber would be a call for each.
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
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]
local count, value, scope, audit = ARGV[4], ARGV[5], ARGV[6], ARGV[7]

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

local a, n, ma, v, mv, h, x, e = unpack(redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e'))
if a ~= agent_id then
  return {'unknown_session'}
end
local gb
if h then
  local s_hx, s_gb = unpack(redis.call('HMGET', session, 'hx', 'gb'))
  if now >= (s_hx or now + 1) + 0 then
    return {'holds_due'}
  end
  gb = s_gb
else
  h = '0'
end
if e or agent_revoked or now >= x + 0 then
  if not e and not agent_revoked then
    local flags = redis.call('HGET', session, 'w') or ''
    note(session, events, audit, now, flags, 'x', 'session.expired')
  end
  return {'not_active', e or '', agent_revoked or '', x, string.format('%.0f', now)}
end
if scope ~= '' then
  local scopes = redis.call('HGET', session, 'sc') or redis.call('HGET', agent, 'scopes')
  if not string.find(' ' .. scopes .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end

local after_n, max_n = n + count, ma + 0
local after_v, max_v = v + value, mv + 0
if after_n > max_n then
  local flags = redis.call('HGET', session, 'w') or ''
  note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
  return {'limit', 'max_actions', n, ma, v, mv, h, x, gb}
end
if after_v + h > max_v then
  local flags, limit = redis.call('HGET', session, 'w') or '', value_limit(gb, mv)
  note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
  return {'limit', limit, n, ma, v, mv, h, x, gb}
end

local used_n, used_v = string.format('%d', after_n), string.format('%d', after_v)
redis.call('HSET', session, 'n', used_n, 'v', used_v)
if after_n * 5 >= max_n * 4 or (after_v + h) * 5 >= max_v * 4 then
  local flags = redis.call('HGET', session, 'w') or ''
  note_usage(session, events, audit, now, flags, after_n, max_n, after_v + h, max_v, value_limit(gb, mv))
end
return {'ok', used_n, ma, used_v, mv, h, x, gb}
