-- Reads a session and what its status follows from.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
--
-- Reply:  {'ok', now, revoked, scopes, session}  now and revoked in ms since 1970 ('' when the agent is not revoked),
--                                                scopes of the agent, session an array of its fields in the order
--                                                a, n, ma, v, mv, h, x, e, c, sc, md with nil for what it has not
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'unknown_session'}
-- Writes: nothing
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family, 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'md')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
return {'ok', now, holder[2] or '', holder[4], s}
