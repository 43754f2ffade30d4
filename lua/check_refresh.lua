-- Says whether a refresh token is unspent and its agent and family still stand, and when it expires.
-- A generation ahead of ours is unspent: Redis has lost its last write.
--
-- KEYS[1] = agent         hash a:{cell}:<agent>
-- KEYS[2] = family        hash f:{cell}:<family>
--
-- ARGV[1] = generation    of the token
-- ARGV[2] = token_family  'family:' and the 16-byte family id of the token
-- ARGV[3] = lifetime      ms that a family lives, however often it is refreshed
--
-- Reply:  {'ok', organization_id, scopes, expires}  organization_id 16 bytes, scopes separated by spaces, expires in ms
--                                                   since 1970
--         {'invalid_refresh_token'}
-- Writes: nothing
--@include drawn_at
local agent, family = KEYS[1], KEYS[2]
local generation, token_family, lifetime = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'revoked', token_family, 'organization', 'scopes', 'epoch')
local stored = redis.call('HMGET', family, 'g', 'sc', 'c', 'e')
if holder[1] or holder[2] or not holder[3] or not stored[1] or generation < tonumber(stored[1])
  or stored[4] ~= holder[5] then
  return {'invalid_refresh_token'}
end
local left = redis.call('PTTL', family)
if stored[3] then -- it was created so long after its id was drawn
  left = math.min(left, drawn_at(token_family, 8) + stored[3] + lifetime - now)
end
if left <= 0 then
  return {'invalid_refresh_token'}
end
return {'ok', holder[3], stored[2] or holder[4], string.format('%.0f', now + left)}
