-- Suspends an organization, or marks a suspended one for deletion. Instances read the hash from time to time and refuse
-- the organizations in it; its version changes with it. A record is 'since state'. Suspending again changes nothing and
-- returns the first answer.
--
-- KEYS[1] = suspended        hash k:suspended
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = state            suspended or deleting; an organization that is being deleted stays so
--
-- Reply:  {'ok', since, state}  since in ms since 1970
-- Writes: HSET suspended
local suspended = KEYS[1]
local organization_id, state = ARGV[1], ARGV[2]

--@block now

local since = string.format('%d', now)
local stored = redis.call('HGET', suspended, organization_id)
if stored then
  local first, was = string.match(stored, '^(%d+) (%a+)$')
  if was == state or was == 'deleting' then
    return {'ok', first, was}
  end
  since = first or since
end
redis.call('HDEL', suspended, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', suspended, organization_id, since .. ' ' .. state, 'version', time[1] .. ' ' .. time[2])
return {'ok', since, state}
