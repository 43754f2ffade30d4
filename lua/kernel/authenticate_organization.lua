-- Checks whether an API key opens an organization, and returns what that organization is.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok', name, metadata, created}  metadata '' for none, created in ms since 1970
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization = KEYS[1]
local credential = ARGV[1]

--@block now

local key_hash, required_role = string.sub(credential, 1, 32), string.sub(credential, 33)
local key_field = 'k:' .. key_hash
--@read organization organization_key previous_key previous_until key_owner=key_field name metadata created
--@block refuse_api_key
return {'ok', name, metadata or '', created}
