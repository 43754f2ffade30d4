-- Charges a session several times in order. Each charge fits whole or is refused, as if charge_session.lua ran for
-- each.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = charges          lines of '<count> <value in micro-USD> <scope>', the scope empty for none
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', outcomes}  an array with a reply for each charge: ok, scope_not_held or limit, as charge_session.lua
--                           returns them
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
-- Writes: HSET session; XADD events for what is first observed
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
local organization_id, agent_id, caller_family, charges, audit = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local agent_fields = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
local agent_organization, agent_revoked, caller_revoked, agent_scopes = agent_fields[1], agent_fields[2], agent_fields[3], agent_fields[4]
if agent_organization ~= organization_id then
  return {'unknown_agent'}
end
if caller_revoked or (agent_revoked and caller_family ~= '') then
  return {'invalid_token'}
end

local a, n, ma, v, mv, h, x, e, sc, hx, w, gb = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'sc', 'hx', 'w', 'gb'))
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

h, gb = h or '0', gb or nil
local used_n, max_n, used_v, max_v, held = tonumber(n), tonumber(ma), tonumber(v), tonumber(mv), tonumber(h)
local scopes, limit = ' ' .. (sc or agent_scopes) .. ' ', value_limit(gb, mv)
local outcomes = {}
for count, value, scope in string.gmatch(charges, '(%d+) (%d+) (%S*)\n') do
  local outcome
  if scope ~= '' and not string.find(scopes, ' ' .. scope .. ' ', 1, true) then
    outcome = {'scope_not_held', scope}
  elseif used_n + count > max_n then
    flags = note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
    outcome = {'limit', 'max_actions', string.format('%.0f', used_n), ma, string.format('%.0f', used_v), mv, h, x, gb}
  elseif used_v + value + held > max_v then
    flags = note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
    outcome = {'limit', limit, string.format('%.0f', used_n), ma, string.format('%.0f', used_v), mv, h, x, gb}
  else
    used_n, used_v = used_n + count, used_v + value
    outcome = {'ok', string.format('%.0f', used_n), ma, string.format('%.0f', used_v), mv, h, x, gb}
    flags = note_usage(session, events, audit, now, flags, used_n, max_n, used_v + held, max_v, limit)
  end
  outcomes[#outcomes + 1] = outcome
end

if used_n > tonumber(n) then
  redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v))
end
return {'ok', outcomes}
