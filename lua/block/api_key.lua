-- Refuses a caller whose API key is not the organization's, or whose role may not do this. credential is the SHA-256 of
-- the key (32 bytes) and the least role that may do this: 1 viewer, 2 operator, 3 admin.
-- Takes credential, now, organization. Sets caller_role, in_grace, key_field, key_hash, key_owner, organization_key,
-- previous_key, previous_until, required_role.
local key_hash, required_role = string.sub(credential, 1, 32), string.sub(credential, 33)
local key_field = 'k:' .. key_hash
--@read organization organization_key previous_key previous_until key_owner=key_field
--@block refuse_api_key
