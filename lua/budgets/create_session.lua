-- Creates a session of an agent. In the agent's index its id leaves out the last two bytes, which are the cell.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = agent_sessions   zset as:{cell}:<agent>
-- KEYS[4] = events           stream ev:{cell}:<agent>
-- KEYS[5] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = session_id       16 bytes
-- ARGV[4] = max_actions
-- ARGV[5] = max_value        micro-USD
-- ARGV[6] = lifetime         ms
-- ARGV[7] = retention        ms that the session stays readable after its lifetime
-- ARGV[8] = scopes           separated by single spaces; '' for all that the agent has, ' ' for none
-- ARGV[9] = metadata         JSON object, '' for none
-- ARGV[10] = max_committed    micro-USD, '' for none
-- ARGV[11] = audit           see include/audit.lua
-- ARGV[12] = max_lease       s that a lease may last, '' for no leases
-- ARGV[13] = enforcement     'observe' to go beyond the limits and count it, '' to enforce them
-- ARGV[14] = max_per_action  micro-USD, '' for none
-- ARGV[15] = deadline        ms since 1970 until which it may be created, when its value is reserved in a budget; else ''
-- ARGV[16] = thresholds      '=' and percents, ascending, with single spaces between; '' for 80 and 100
--
-- Arguments: each is stored as a field of its own, or bounds one; packed into one they would be taken apart here.
--
-- Reply:  {'ok', session_id, created, expires, scopes, max_actions, max_value}  times in ms since 1970; scopes of
--                                   the session
--         {'unknown_agent'}
--         {'agent_revoked'}
--         {'scope_not_held', scope}         the first scope that the agent does not have
--         {'agent_limit', limit, at}        max_open_sessions are open; at ''
--         {'given_up'}                      it came too late, and its reservation is given back
-- Writes: HSET and PEXPIRE session; ZADD and PEXPIRE agent_sessions; ZADD, ZREM and PEXPIRE agent_open; HSET agent; XADD
-- events
--@include audit
--@include agent_limit_notes
--@include budget
--@include drawn_at
--@include parts
--@include thresholds
local agent, session, agent_sessions, events, agent_open = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local organization_id, agent_id, session_id, max_actions, max_value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local lifetime, retention, scopes, metadata = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]
local max_committed, audit, max_lease, enforcement, max_per_action = ARGV[10], ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local deadline, thresholds = ARGV[15], ARGV[16]

--@block now

--@read agent agent_organization agent_revoked agent_scopes max_open_sessions
--@block refuse_unknown_agent
if agent_revoked then
  return {'agent_revoked'}
end
--@block hold_scopes held=agent_scopes
if deadline ~= '' and (now > tonumber(deadline) or redis.call('EXISTS', session) == 1) then
  return {'given_up'}
end
--@block refuse_open_sessions

local created, expires = string.format('%d', now), string.format('%d', now + lifetime)
-- The id has the time at which it was drawn. What is kept of the creation is only how long after that it was, by another
-- clock: most often a byte or two instead of nine.
local since_drawn = string.format('%d', now - drawn_at(session_id, 1))
local flags, watched = own_thresholds(thresholds)
local restrictions = (deadline ~= '' and 'k' or '') .. (enforcement ~= '' and 'o' or '') .. (max_per_action ~= '' and 'p' or '') .. watched
local refunds, value_limit = nil, max_value
if max_committed ~= '' then
  refunds, value_limit = write_budget('0', max_committed, max_value)
elseif restrictions ~= '' then
  refunds, value_limit = write_budget('0', no_max_committed, max_value) -- as include/restrict.lua
end
-- A hash of few fields is searched from its first, so what each charge reads and writes stands there.
local fields = {'n', 0, 'v', 0, agent_id, string.format('%d', (math.floor(now / 86400000) + 1) * 86400), 'ma', max_actions, 'mv',
  value_limit,
  'x', expires, 'c', since_drawn, 'a', agent_id}
--@block optional_field field=sc value=scopes
--@block optional_field field=md value=metadata
--@block optional_field field=ml value=max_lease
--@block optional_field field=mp value=max_per_action
--@block optional_field field=w value=flags
if refunds then
  fields[#fields + 1] = 'gb'
  fields[#fields + 1] = refunds
  fields[#fields + 1] = 'h'
  fields[#fields + 1] = 0
end
if restrictions ~= '' then
  fields[#fields + 1] = 'r'
  fields[#fields + 1] = restrictions
end
if enforcement ~= '' then
  fields[#fields + 1] = 'oc'
  fields[#fields + 1] = 0
end
local kept = lifetime + retention
local ttl = string.format('%d', kept)
redis.call('HSET', session, unpack(fields))
redis.call('PEXPIRE', session, deadline ~= '' and as_long_as_parts or ttl)
redis.call('ZADD', agent_sessions, 0, string.sub(session_id, 1, 14))
--@block extend_ttl key=agent_sessions
--@block enter_open_session
local limits = {'max_actions', max_actions, 'max_value', max_value, 'expires', expires}
if max_committed ~= '' then
  limits[#limits + 1] = 'max_committed'
  limits[#limits + 1] = max_committed
end
if max_lease ~= '' then
  limits[#limits + 1] = 'max_lease'
  limits[#limits + 1] = max_lease
end
if enforcement ~= '' then
  limits[#limits + 1] = 'enforcement'
  limits[#limits + 1] = enforcement
end
if max_per_action ~= '' then
  limits[#limits + 1] = 'max_per_action'
  limits[#limits + 1] = max_per_action
end
if thresholds ~= '' then
  limits[#limits + 1] = 'thresholds'
  limits[#limits + 1] = string.sub(thresholds, 2)
end
record(events, audit, now, 'session.created', 'session', string.sub(session, -36), unpack(limits))
if scopes == '' then
  scopes = agent_scopes
end
return {'ok', session_id, created, expires, scopes, max_actions, max_value}
