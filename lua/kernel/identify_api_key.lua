-- Reads which of an organization's API keys this is, and whether another has replaced it.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok', name, key_id, role, replaced}  the organization's name; 16 bytes, '' for the first key; 1 viewer, 2 operator,
--                                               3 admin; '1' for a key in its grace time, else ''
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization = KEYS[1]
local credential = ARGV[1]

--@block now
--@block api_key
local key_id, replaced = '', in_grace
if key_hash ~= organization_key and not in_grace then
  key_id = string.sub(key_owner, 2, 17)
  local record = redis.call('HGET', organization, 'K:' .. key_id)
  replaced = not record or string.sub(record, 1, 32) ~= key_hash
end
return {'ok', redis.call('HGET', organization, 'name'), key_id, caller_role, replaced and '1' or ''}
