-- Deletes an API key of an organization. One admin key that never expires stays, or no key could create keys any more.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = key_id        16 bytes, '' for the first key
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'successor_used'}   the key presented is in its grace time and the one after it in use
--         {'unknown_api_key'}
--         {'last_admin_key'}
-- Writes: HDEL and HSET organization
--@include read_api_keys
--@include count_bytes
--@include write_api_keys
local organization = KEYS[1]
local credential, key_id = ARGV[1], ARGV[2]

--@block now
--@block api_key
--@block refuse_replaced_key
local key
local admins = 0 -- others that never expire
for _, k in ipairs((read_keys(organization))) do
  if k.id == key_id then
    key = k
  elseif k.role == '3' and k.expires == '' then
    admins = admins + 1
  end
end
if not key then
  return {'unknown_api_key'}
end
if key.role == '3' and key.expires == '' and admins == 0 then
  return {'last_admin_key'}
end
remove_key(organization, key)
return {'ok'}
