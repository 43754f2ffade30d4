-- Ends the suspension of an organization, unless its deletion has begun. Resuming again changes nothing.
--
-- KEYS[1] = suspended        hash k:suspended
--
-- ARGV[1] = organization_id  16 bytes
--
-- Reply:  {'ok'}
--         {'being_deleted'}
-- Writes: HDEL and HSET suspended
local suspended, organization_id = KEYS[1], ARGV[1]

local time = redis.call('TIME')
local stored = redis.call('HGET', suspended, organization_id)
if not stored then
  return {'ok'}
end
if string.match(stored, ' deleting$') then
  return {'being_deleted'}
end
redis.call('HDEL', suspended, organization_id)
redis.call('HSET', suspended, 'version', time[1] .. ' ' .. time[2])
return {'ok'}
