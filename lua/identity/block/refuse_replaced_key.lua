-- Refuses a key in its grace time whose successor was used: with it a thief could take the organization over.
-- Takes key_hash, key_owner, organization. Sets own_id, own_key.
local own_id = key_owner and string.sub(key_owner, 2, 17) or ''
local own_key = read_key(organization, own_id)
if own_key and own_key.current ~= key_hash and own_key.used then
  return {'successor_used'}
end
