-- Lets an agent's batch in and ties its idempotency key to it, before the batch is taken apart: the outcomes of its parts
-- are kept apart (idempotent.lua).
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = claim            string i:{cell}:<digest>
--
-- ARGV[1] = organization_id  16 bytes, of the access token
-- ARGV[2] = caller_family    'family:' and the 16-byte family id of the access token
-- ARGV[3] = fingerprint      SHA-256 of what is asked, 32 bytes
-- ARGV[4] = ttl              ms that the claim is kept
-- ARGV[5] = request_id       of the request that asks
--
-- Reply:  {'ok', request_id, claimed}  as claim_key.lua
--         {'invalid_token'}  the access token's agent or family is revoked
--         {'key_reused'}     the same key for another request
-- Writes: SET claim, the first time
local agent, claim = KEYS[1], KEYS[2]
local organization_id, caller_family, fingerprint, ttl, request_id = unpack(ARGV)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
if holder[1] ~= organization_id or holder[2] or holder[3] then
  return {'invalid_token'}
end

local mine = '*2:$32:' .. fingerprint .. '$' -- as idempotent.lua writes what it keeps
local claimed = redis.call('GET', claim)
if claimed and string.sub(claimed, 1, #mine) ~= mine then
  return {'key_reused'}
end
if claimed then
  return {'ok', string.sub(claimed, string.find(claimed, ':', #mine, true) + 1), '1'}
end
redis.call('SET', claim, mine .. #request_id .. ':' .. request_id, 'PX', ttl)
return {'ok', request_id, ''}
