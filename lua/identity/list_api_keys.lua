-- Reads the API keys of an organization, in no order. They are at most 64.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok', listed}  of each key an array: id (16 bytes, '' for the first key), role, created, expires ('' for never),
--                         hint ('' for unknown), last use ('' for none) and name; times in ms since 1970
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
--@include read_api_keys
local organization = KEYS[1]
local credential = ARGV[1]

--@block now
--@block api_key
local keys, last_used = read_keys(organization)
local listed = {}
for i, k in ipairs(keys) do
  listed[i] = {k.id, k.role, k.created, k.expires, k.hint, last_used[k.id] or '', k.name}
end
return {'ok', listed}
