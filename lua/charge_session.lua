-- Charges a session: counts actions and value if, and only if, all of it fits.
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
-- Reply:  {'ok', n, ma, v, mv, h, x}            actions and their limit; value, its limit and what is held, in
--                                               micro-USD; expiry in ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
--         {'scope_not_held', scope}
--         {'limit', limit, n, ma, v, mv, h, x}  limit is max_actions or max_value_usd; nothing was charged
-- Writes: HSET session; XADD events for what is seen the first time
--@include audit
--@include marks
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]
local count, value, scope, audit = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'sc', 'hx', 'w')
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
if scope ~= '' and not string.find(' ' .. (s[9] or holder[4]) .. ' ', ' ' .. scope .. ' ', 1, true) then
  return {'scope_not_held', scope}
end

local n, max_n = tonumber(s[2]) + count, tonumber(s[3])
local v, max_v = tonumber(s[4]) + value, tonumber(s[5])
local h = string.format('%.0f', held)
if n > max_n then
  note(session, events, audit, now, marks, 'N', 'session.limit_reached', 'limit', 'max_actions')
  return {'limit', 'max_actions', s[2], s[3], s[4], s[5], h, s[7]}
end
if v + held > max_v then
  note(session, events, audit, now, marks, 'V', 'session.limit_reached', 'limit', 'max_value_usd')
  return {'limit', 'max_value_usd', s[2], s[3], s[4], s[5], h, s[7]}
end

local used_n, used_v = string.format('%.0f', n), string.format('%.0f', v)
redis.call('HSET', session, 'n', used_n, 'v', used_v)
if n * 5 >= max_n * 4 or (v + held) * 5 >= max_v * 4 then
  note_usage(session, events, audit, now, marks, n, max_n, v + held, max_v)
end
return {'ok', used_n, s[3], used_v, s[5], h, s[7]}
