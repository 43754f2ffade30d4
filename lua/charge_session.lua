-- Charges a session: counts actions and value if, and only if, all of it fits.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = count            actions
-- ARGV[5] = value            micro-USD
-- ARGV[6] = scope            that the session must hold, '' for none
--
-- Reply:  {'ok', n, ma, v, mv, h, x}            actions and their limit; value, its limit and what is held, in
--                                               micro-USD; expiry in ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
--         {'scope_not_held', scope}
--         {'limit', limit, n, ma, v, mv, h, x}  limit is max_actions or max_value_usd; nothing was charged
-- Writes: HSET session
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]
local count, value, scope = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'sc')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
if s[8] or holder[2] or now >= tonumber(s[7]) then
  return {'not_active', s[8] or '', holder[2] or '', s[7], string.format('%.0f', now)}
end
if scope ~= '' and not string.find(' ' .. (s[9] or holder[4]) .. ' ', ' ' .. scope .. ' ', 1, true) then
  return {'scope_not_held', scope}
end

local held = s[6] or '0'
local n, v = tonumber(s[2]) + count, tonumber(s[4]) + value
if n > tonumber(s[3]) then
  return {'limit', 'max_actions', s[2], s[3], s[4], s[5], held, s[7]}
end
if v + tonumber(held) > tonumber(s[5]) then
  return {'limit', 'max_value_usd', s[2], s[3], s[4], s[5], held, s[7]}
end

n, v = string.format('%.0f', n), string.format('%.0f', v)
redis.call('HSET', session, 'n', n, 'v', v)
return {'ok', n, s[3], v, s[5], held, s[7]}
