-- Refuses key_hash unless it is the organization's key, or the one before in its grace time. Lua interns strings, so ==
-- compares two pointers: its duration reveals nothing of the hashes.
local in_grace = key_hash == previous_key and now < tonumber(previous_until or 0)
if key_hash ~= organization_key and not in_grace then
  return {'invalid_api_key'}
end
