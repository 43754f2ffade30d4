-- Creates a session of an agent. Its arguments are its facts: packing them would only hide them. In the agent's index its
-- id leaves out the last two bytes, which are the cell.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = agent_sessions   zset as:{cell}:<agent>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the organization that asks
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
-- Reply:  {'ok', session_id, created, expires, scopes, max_actions, max_value}  times in ms since 1970; scopes of
--                                   the session
--         {'unknown_agent'}
--         {'agent_revoked'}
--         {'scope_not_held', scope}         the first scope that the agent does not have
-- Writes: HSET and PEXPIRE session; ZADD and PEXPIRE agent_sessions; XADD events
--@include audit
--@include budget
local agent, session, agent_sessions, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, session_id, max_actions, max_value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local lifetime, retention, scopes, metadata = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]
local max_committed, audit = ARGV[10], ARGV[11]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[2] then
  return {'agent_revoked'}
end
for scope in string.gmatch(scopes, '%S+') do
  if not string.find(' ' .. holder[3] .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end

local created, expires = string.format('%.0f', now), string.format('%.0f', now + lifetime)
-- The id has the time at which it was drawn. What is kept of the creation is only how long after that it was, by another
-- clock: most often a byte or two instead of nine.
local drawn = 0
for i = 1, 6 do
  drawn = drawn * 256 + string.byte(session_id, i)
end
local since_drawn = string.format('%.0f', now - drawn)
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
local kept = string.format('%.0f', lifetime + retention)
redis.call('HSET', session, unpack(fields))
redis.call('PEXPIRE', session, kept)
redis.call('ZADD', agent_sessions, 0, string.sub(session_id, 1, 14))
if redis.call('PTTL', agent_sessions) < lifetime + retention then
  redis.call('PEXPIRE', agent_sessions, kept)
end
local limits = {'max_actions', max_actions, 'max_value', max_value, 'expires', expires}
if max_committed ~= '' then
  limits[#limits + 1] = 'max_committed'
  limits[#limits + 1] = max_committed
end
record(events, audit, now, 'session.created', 'session', string.sub(session, -36), unpack(limits))
if scopes == '' then
  scopes = holder[3]
end
return {'ok', session_id, created, expires, scopes, max_actions, max_value}
