-- Replaces the first API key of an organization, for the operator. All its other keys end at once, or after a grace time.
-- With the same key again it changes nothing: the first answer may have been lost.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
--
-- ARGV[1] = new_key       SHA-256 of the new API key (32 bytes) and its last 4 characters
-- ARGV[2] = grace         ms for which the current keys stay valid, 0 for none
--
-- Reply:  {'ok', previous_until}     ms since 1970 at which the keys before end; now when it has none
--         {'unknown_organization'}
-- Writes: HSET and HDEL organization
--@include read_api_keys
--@include count_bytes
--@include write_api_keys
local organization = KEYS[1]
local new_key, grace = ARGV[1], tonumber(ARGV[2])

--@block now

local name, organization_key, old_previous_until = unpack(redis.call('HMGET', organization, 'name', 'key', 'previous_until'))
if not name then
  return {'unknown_organization'}
end
local new_hash, ends = string.sub(new_key, 1, 32), now + grace
local previous_until = string.format('%d', ends)
if organization_key == new_hash then
  return {'ok', old_previous_until or previous_until}
end

redis.call('HDEL', organization, '') -- goes on when Redis is full, see lua.go
for _, k in ipairs((read_keys(organization))) do
  if k.id ~= '' and grace == 0 then
    remove_key(organization, k)
  elseif k.id ~= '' and (k.expires == '' or tonumber(k.expires) > ends) then
    k.expires = previous_until
    write_key(organization, k)
  end
end
redis.call('HSET', organization, 'key', new_hash, 'hint', string.sub(new_key, 33))
if organization_key and grace > 0 then
  -- The new key counts as used: the one before must not manage keys in its grace time.
  redis.call('HSET', organization, 'used_key', new_hash, 'previous_key', organization_key, 'previous_until', previous_until)
else
  redis.call('HDEL', organization, 'previous_key', 'previous_until')
end
return {'ok', previous_until}
