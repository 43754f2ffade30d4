-- Replaces an organization's API key, for the operator. Its other keys end at once, or the current one after a grace
-- time. With the same key again it changes nothing: the first answer may have been lost.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = new_key_hash  SHA-256 of the new API key, 32 bytes
-- ARGV[2] = grace         ms for which the current key stays valid, 0 for none
--
-- Reply:  {'ok', previous_until}     ms since 1970 at which the key before ends; now when it has none
--         {'unknown_organization'}
-- Writes: HSET and HDEL organization
local organization = KEYS[1]
local new_key_hash, grace = ARGV[1], tonumber(ARGV[2])

--@block now

local name, organization_key, old_previous_until = unpack(redis.call('HMGET', organization, 'name', 'key', 'previous_until'))
if not name then
  return {'unknown_organization'}
end
local previous_until = string.format('%d', now + grace)
if organization_key == new_key_hash then
  return {'ok', old_previous_until or previous_until}
end

redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
if organization_key and grace > 0 then
  -- The new key counts as used: the one before must not rotate it away in its grace time.
  redis.call('HSET', organization, 'key', new_key_hash, 'used_key', new_key_hash,
    'previous_key', organization_key, 'previous_until', previous_until)
else
  redis.call('HSET', organization, 'key', new_key_hash)
  redis.call('HDEL', organization, 'previous_key', 'previous_until')
end
return {'ok', previous_until}
