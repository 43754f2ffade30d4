-- Refuses key_hash unless it is the organization's first key, the one before that in its grace time, or another key's
-- (include/read_api_keys.lua) that has not ended; and a key whose role is below required_role. Lua interns strings, so ==
-- compares two pointers: its duration reveals nothing of the hashes.
-- Takes key_hash, key_owner, now, organization_key, previous_key, previous_until, required_role. Sets caller_role, in_grace.
local in_grace = key_hash == previous_key and now < tonumber(previous_until or 0)
local caller_role = '0'
if key_hash == organization_key or in_grace then
  caller_role = '3'
elseif key_owner and now < (tonumber(string.sub(key_owner, 18)) or now + 1) then
  caller_role = string.sub(key_owner, 1, 1)
end
if caller_role == '0' then
  return {'invalid_api_key'}
end
if caller_role < required_role then
  return {'insufficient_role', required_role}
end
