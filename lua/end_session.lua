-- Ends an active session. Ending it again changes nothing and gives the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = retention        ms that the session stays readable from now
--
-- Reply:  {'ok', ended}                         ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
-- Writes: HSET and PEXPIRE session
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id, caller_family, retention = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'x', 'e')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
if s[3] then
  return {'ok', s[3]}
end
local ended = string.format('%.0f', now)
if holder[2] or now >= tonumber(s[2]) then
  return {'not_active', '', holder[2] or '', s[2], ended}
end

redis.call('HSET', session, 'e', ended)
redis.call('PEXPIRE', session, retention)
return {'ok', ended}
