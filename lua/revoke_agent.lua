-- Revokes an agent. Everything that asks for an agent reads this one field, so nothing else has to be written for its
-- secret, its tokens and its sessions to stop working. Revoking again changes nothing and gives the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the organization that asks
--
-- Reply:  {'ok', revoked}  revoked in ms since 1970
--         {'unknown_agent'}
-- Writes: HSET agent, once in its life
local agent = KEYS[1]
local organization_id = ARGV[1]

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local stored = redis.call('HMGET', agent, 'organization', 'revoked')
if stored[1] ~= organization_id then
  return {'unknown_agent'}
end
if stored[2] then
  return {'ok', stored[2]}
end

redis.call('HSET', agent, 'revoked', now)
return {'ok', now}
