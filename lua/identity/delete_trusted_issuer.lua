-- Removes a trusted issuer: from now on its tokens are exchanged for nothing.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = issuers       hash oti:{cell}:<organization>
-- KEYS[3] = names         hash otn:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = issuer_id     16 bytes
-- ARGV[3] = name          of the issuer, which never changes
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_issuer'}
-- Writes: HDEL issuers and names; HSET organization
--@include count_bytes
local organization, issuers, names = KEYS[1], KEYS[2], KEYS[3]
local credential, issuer_id, name = unpack(ARGV)

--@block now
--@block api_key
local settings = redis.call('HGET', issuers, issuer_id)
if not settings then
  return {'unknown_issuer'}
end
redis.call('HDEL', issuers, issuer_id)
if redis.call('HGET', names, name) == issuer_id then
  redis.call('HDEL', names, name)
end
count_bytes(organization, -(110 + #name + #settings))
return {'ok'}
