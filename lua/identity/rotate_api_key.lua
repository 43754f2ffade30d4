-- Replaces an API key of an organization. Its credential in use stays valid for the grace time. Of the key that calls, that
-- is the credential presented, not the one it replaces: when the reply to a rotation was lost, the client still uses the old
-- credential and tries again. Of another key, it is the one before if the current one was never used, for the same reason.
-- Once its successor was used, a credential in its grace time rotates nothing, so that a thief of it cannot take the
-- organization over.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = new_key       SHA-256 of the new credential (32 bytes) and its last 4 characters
-- ARGV[3] = grace         ms for which the credential in use stays valid
-- ARGV[4] = key_id        16 bytes, '' for the first key, - for the key that calls
--
-- Reply:  {'ok', previous_until, own}  ms since 1970 at which the credential in use ends; own '1' for the key that calls, else ''
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'successor_used'}      the key presented is in its grace time and the one after it in use
--         {'unknown_api_key'}
-- Writes: HSET and HDEL organization
--@include read_api_keys
--@include count_bytes
--@include write_api_keys
local organization = KEYS[1]
local credential, new_key, grace, key_id = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

--@block now
--@block api_key
--@block refuse_replaced_key
if key_id == '-' then
  key_id = own_id
end
local key = read_key(organization, key_id)
if not key then
  return {'unknown_api_key'}
end

local in_use, ends = key.current, now + grace
local previous_lives = key.previous ~= '' and now < key.previous_until
if previous_lives and (key_hash == key.previous or key_hash ~= key.current and not key.used) then
  in_use = key.previous
  ends = math.min(ends, key.previous_until) -- it does not prolong its own time
end
local expires = tonumber(key.expires)
if expires and expires < ends then
  ends = expires
end
local old_current, old_previous = key.current, key.previous
redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
if old_current ~= in_use then
  end_credential(organization, old_current)
end
if old_previous ~= in_use then
  end_credential(organization, old_previous)
end
key.current, key.hint, key.previous, key.previous_until = string.sub(new_key, 1, 32), string.sub(new_key, 33), in_use, ends
key.used = false
write_key(organization, key)
return {'ok', string.format('%.0f', ends), key_id == own_id and '1' or ''}
