-- Reads where a transaction stands. What never changes of it is read before, with the session that it belongs to.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>; one that does not exist when the transaction has none
-- KEYS[3] = transaction      hash t:{cell}:<transaction>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
--
-- Reply:  {'ok', now, ended, x, state}  as commit_transaction.lua
--         {'unknown_agent'}
--         {'invalid_token'}             the access token's agent or family is revoked
--         {'unknown_transaction'}
-- Writes: nothing
--@include states
local agent, session, transaction = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local t = redis.call('HMGET', transaction, 'a', 's', 'x', 'st', 'v', 'ov', 'cm', 'rb', 're', 'po', 'hv')
if t[1] ~= agent_id then
  return {'unknown_transaction'}
end
local s = redis.call('HMGET', session, 'a', 'e')
return {'ok', now, session_end(t[2], s[1], s[2]), t[3], {unpack(t, 4)}}
