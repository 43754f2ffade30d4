-- Creates a session of an agent. In the agent's index its id leaves out the last two bytes, which are the cell.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = agent_sessions   zset as:{cell}:<agent>
-- KEYS[4] = events           stream ev:{cell}:<agent>
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
--
-- Arguments: each is stored as a field of its own, or bounds one; packed into one they would be taken apart here.
--
-- Reply:  {'ok', session_id, created, expires, scopes, max_actions, max_value}  times in ms since 1970; scopes of
--                                   the session
--         {'unknown_agent'}
--         {'agent_revoked'}
--         {'scope_not_held', scope}         the first scope that the agent does not have
-- Writes: HSET and PEXPIRE session; ZADD and PEXPIRE agent_sessions; XADD events
-- Appends to an agent's audit trail: what happened, when, by whom and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key' or 'agent'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%a+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%.0f', now), 'actor', actor,
    'request', request, ...)
end
-- Reads and writes a session's field gb: '<given back>', the micro-USD that rollbacks have taken off v. So v and gb
-- together are what was ever charged or committed. With max_committed it is '<given back> <max_committed> <max_value>',
-- and mv is the lower of max_value and what max_committed leaves: a script that compares with mv alone enforces both.
-- Such a session always has h, so a charge reads gb. read_budget returns what was given back, max_committed (nil for
-- none) and max_value; write_budget takes them, and returns gb and mv.
local function read_budget(gb, mv)
  local given_back, max_committed, max_value = string.match(gb or '0', '^(%d+) ?(%d*) ?(%d*)$')
  if max_committed == '' then
    return given_back, nil, mv
  end
  return given_back, max_committed, max_value
end

local function write_budget(given_back, max_committed, max_value)
  if not max_committed then
    return given_back, max_value
  end
  local mv = math.min(tonumber(max_value), max_committed - given_back)
  return given_back .. ' ' .. max_committed .. ' ' .. max_value, string.format('%.0f', mv)
end
-- Returns the time, in ms since 1970 by the instance's clock, at which an id was drawn; its bytes begin at first.
local function drawn_at(text, first)
  local a, b, c, d, e, f = string.byte(text, first, first + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end
local agent, session, agent_sessions, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, session_id, max_actions, max_value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local lifetime, retention, scopes, metadata = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]
local max_committed, audit = ARGV[10], ARGV[11]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local agent_organization, agent_revoked, agent_scopes = unpack(redis.call('HMGET', agent, 'organization', 'revoked', 'scopes'))
if agent_organization ~= organization_id then
  return {'unknown_agent'}
end
if agent_revoked then
  return {'agent_revoked'}
end
for scope in string.gmatch(scopes, '%S+') do
  if not string.find(' ' .. agent_scopes .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end

local created, expires = string.format('%.0f', now), string.format('%.0f', now + lifetime)
-- The id has the time at which it was drawn. What is kept of the creation is only how long after that it was, by another
-- clock: most often a byte or two instead of nine.
local since_drawn = string.format('%.0f', now - drawn_at(session_id, 1))
local gb, mv = nil, max_value
if max_committed ~= '' then
  gb, mv = write_budget('0', max_committed, max_value)
end
local fields = {'a', agent_id, 'ma', max_actions, 'mv', mv, 'n', 0, 'v', 0, 'c', since_drawn, 'x', expires}
if scopes ~= '' then
  fields[#fields + 1] = 'sc'
  fields[#fields + 1] = scopes
end
if metadata ~= '' then
  fields[#fields + 1] = 'md'
  fields[#fields + 1] = metadata
end
if gb then
  fields[#fields + 1] = 'gb'
  fields[#fields + 1] = gb
  fields[#fields + 1] = 'h'
  fields[#fields + 1] = 0
end
local kept = lifetime + retention
local ttl = string.format('%.0f', kept)
redis.call('HSET', session, unpack(fields))
redis.call('PEXPIRE', session, ttl)
redis.call('ZADD', agent_sessions, 0, string.sub(session_id, 1, 14))
if redis.call('PTTL', agent_sessions) < kept then
  redis.call('PEXPIRE', agent_sessions, ttl)
end
local limits = {'max_actions', max_actions, 'max_value', max_value, 'expires', expires}
if max_committed ~= '' then
  limits[#limits + 1] = 'max_committed'
  limits[#limits + 1] = max_committed
end
record(events, audit, now, 'session.created', 'session', string.sub(session, -36), unpack(limits))
if scopes == '' then
  scopes = agent_scopes
end
return {'ok', session_id, created, expires, scopes, max_actions, max_value}
