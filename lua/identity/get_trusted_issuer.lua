-- Reads a trusted issuer of an organization.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = issuers       hash oti:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = issuer_id     16 bytes
--
-- Reply:  {'ok', settings}  as Go wrote them
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'unknown_issuer'}
-- Writes: nothing
local organization, issuers = KEYS[1], KEYS[2]
local credential, issuer_id = ARGV[1], ARGV[2]

--@block now
--@block api_key
local settings = redis.call('HGET', issuers, issuer_id)
if not settings then
  return {'unknown_issuer'}
end
return {'ok', settings}
