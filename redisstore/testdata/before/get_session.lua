-- Reads a session and what its status depends on. It may note an expiry in the audit trail; no caller requested that,
-- so a lost answer leaves nothing in doubt.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok', now, revoked, scopes, session}  now and revoked in ms since 1970 ('' when the agent is not revoked),
--                                                scopes of the agent, session an array of its fields in the order
--                                                a, n, ma, v, mv, h, x, e, c, sc, ov, gb, md with nil for what it has not;
--                                                c in ms since the time that the session's id carries
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
-- Writes: nothing that was requested; when it first observes the expiry, HSET session and XADD events
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
local organization_id, agent_id, caller_family, audit = unpack(ARGV)

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

local state = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'ov', 'gb', 'md')
local a, h, x, e = state[1], state[6], state[7], state[8]
if a ~= agent_id then
  return {'unknown_session'}
end
if h and now >= tonumber(redis.call('HGET', session, 'hx') or now + 1) then
  return {'holds_due'}
end
if not e and not agent_revoked and now >= tonumber(x or now + 1) then
  note(session, events, audit, now, redis.call('HGET', session, 'w') or '', 'x', 'session.expired')
end
return {'ok', string.format('%.0f', now), agent_revoked or '', agent_scopes, state}
