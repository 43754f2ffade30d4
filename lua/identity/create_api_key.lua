-- Creates an API key of an organization, beside those that it has. When it has as many as it may, the key that expired first
-- makes room.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = key_id        16 bytes, of the new key
-- ARGV[3] = new_key       SHA-256 of the new key (32 bytes) and its last 4 characters
-- ARGV[4] = role          of the new key, see block/api_key.lua
-- ARGV[5] = lifetime      ms until the new key ends, '' for never
-- ARGV[6] = name
--
-- Reply:  {'ok', key_id, created, expires}  in ms since 1970, expires '' for never
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'successor_used'}                the key presented is in its grace time and the one after it in use
--         {'over_quota', name, used, quota}
-- Writes: HSET and HDEL organization
--@include read_api_keys
--@include count_bytes
--@include write_api_keys
local organization = KEYS[1]
local credential, key_id, new_key, role, lifetime, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local most_keys = 64

--@block now
--@block api_key
--@block refuse_replaced_key
local keys = read_keys(organization)
local expired
for _, k in ipairs(keys) do
  local ends = tonumber(k.expires)
  if ends and ends <= now and (not expired or ends < tonumber(expired.expires)) then
    expired = k
  end
end
if #keys >= most_keys then
  if not expired then
    return {'over_quota', 'api_keys', string.format('%d', #keys), string.format('%d', most_keys)}
  end
  remove_key(organization, expired)
end
local created, expires = string.format('%d', now), ''
if lifetime ~= '' then
  expires = string.format('%d', now + tonumber(lifetime))
end
write_key(organization, {id = key_id, role = role, current = string.sub(new_key, 1, 32), previous = '', previous_until = 0,
  used = false, created = created, expires = expires, hint = string.sub(new_key, 33), name = name})
return {'ok', key_id, created, expires}
