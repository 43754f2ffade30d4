-- Lets an organization's request in and ties its idempotency key to it, where the organization's requests on all agents
-- meet. What came of the request is kept with the change, in the agent's cell (idempotent.lua).
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = claim         string i:{cell}:<digest>
--
-- ARGV[1] = key_hash      SHA-256 of the API key presented, 32 bytes
-- ARGV[2] = fingerprint   SHA-256 of what is asked, 32 bytes
-- ARGV[3] = ttl           ms that the claim is kept
-- ARGV[4] = request_id    of the request that asks
-- ARGV[5] = cell          where the outcome will be, 4 hexadecimal digits; '' for several
--
-- Reply:  {'ok', request_id, claimed}  of the request that claimed the key first; claimed '1' if that was one before, or ''
--         {'invalid_api_key'}
--         {'key_reused'}  the same key for another request
-- Writes: SET claim, the first time
local organization, claim = KEYS[1], KEYS[2]
local key_hash, fingerprint, ttl, request_id, cell = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', organization, 'key', 'previous_key', 'previous_until')
local in_grace = key_hash == stored[2] and now < tonumber(stored[3] or 0)
if key_hash ~= stored[1] and not in_grace then
  return {'invalid_api_key'}
end

local claimed = redis.call('GET', claim)
if claimed and string.sub(claimed, 1, 32) ~= fingerprint then
  return {'key_reused'}
end
if claimed then
  -- The cell and the organization's id follow the request's id, unless an earlier version made the claim.
  return {'ok', string.match(claimed, '^[^ ]*', 33), '1'}
end
redis.call('SET', claim, fingerprint .. request_id .. ' ' .. cell .. ' ' .. string.sub(organization, -36), 'PX', ttl)
return {'ok', request_id, ''}
