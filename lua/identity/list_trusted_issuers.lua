-- Reads all trusted issuers of an organization.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = issuers       hash oti:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok', stored}  array of names and values: issuer (16 bytes) to settings
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization, issuers = KEYS[1], KEYS[2]
local credential = ARGV[1]

--@block now
--@block api_key
return {'ok', redis.call('HGETALL', issuers)}
