-- Stores other settings of a trusted issuer, if they are still those that the caller read. Its name stays.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = issuers       hash oti:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = issuer_id     16 bytes
-- ARGV[3] = found         the settings that were read
-- ARGV[4] = settings      the new ones
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_issuer'}
--         {'changed_meanwhile'}  others were stored meanwhile
-- Writes: HSET issuers and organization
--@include count_bytes
local organization, issuers = KEYS[1], KEYS[2]
local credential, issuer_id, found, settings = unpack(ARGV)

--@block now
--@block api_key
local stored = redis.call('HGET', issuers, issuer_id)
if not stored then
  return {'unknown_issuer'}
end
if stored ~= found and stored ~= settings then
  return {'changed_meanwhile'}
end
redis.call('HSET', issuers, issuer_id, settings)
count_bytes(organization, #settings - #stored)
return {'ok'}
