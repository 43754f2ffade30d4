-- Charges a session several times in order, each time all or nothing, as charge_session.lua would one by one.
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
--                           gives them
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
-- Writes: HSET session; XADD events for what is seen the first time
--@include audit
--@include marks
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family, charges, audit = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'sc', 'hx', 'w', 'gb')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
local held, marks = tonumber(s[6] or 0), s[11] or ''
if s[10] and now >= tonumber(s[10]) then
  return {'holds_due'}
end
if s[8] or holder[2] or now >= tonumber(s[7]) then
  if not s[8] and not holder[2] then
    note(session, events, audit, now, marks, 'x', 'session.expired')
  end
  return {'not_active', s[8] or '', holder[2] or '', s[7], string.format('%.0f', now)}
end

local h = string.format('%.0f', held)
local n, max_n, v, max_v = tonumber(s[2]), tonumber(s[3]), tonumber(s[4]), tonumber(s[5])
local scopes = ' ' .. (s[9] or holder[4]) .. ' '
local limit, gb = value_limit(s[12], s[5]), s[12] or nil
local outcomes = {}
for count, value, scope in string.gmatch(charges, '(%d+) (%d+) (%S*)\n') do
  local outcome
  if scope ~= '' and not string.find(scopes, ' ' .. scope .. ' ', 1, true) then
    outcome = {'scope_not_held', scope}
  elseif n + count > max_n then
    marks = note(session, events, audit, now, marks, 'N', 'session.limit_reached', 'limit', 'max_actions')
    outcome = {'limit', 'max_actions', string.format('%.0f', n), s[3], string.format('%.0f', v), s[5], h, s[7], gb}
  elseif v + value + held > max_v then
    marks = note(session, events, audit, now, marks, 'V', 'session.limit_reached', 'limit', limit)
    outcome = {'limit', limit, string.format('%.0f', n), s[3], string.format('%.0f', v), s[5], h, s[7], gb}
  else
    n, v = n + count, v + value
    outcome = {'ok', string.format('%.0f', n), s[3], string.format('%.0f', v), s[5], h, s[7], gb}
    marks = note_usage(session, events, audit, now, marks, n, max_n, v + held, max_v, limit)
  end
  outcomes[#outcomes + 1] = outcome
end

if n > tonumber(s[2]) then
  redis.call('HSET', session, 'n', string.format('%.0f', n), 'v', string.format('%.0f', v))
end
return {'ok', outcomes}
