-- Adds a key that signs from a later time on, and lets the keys before it end once all they signed has expired. A
-- record is 'created signs_from ends material'; times in ms since 1970, ends 0 for a key with no successor.
--
-- KEYS[1] = keys      hash k:<kind>
--
-- ARGV[1] = key_id
-- ARGV[2] = material  as it is to be kept
-- ARGV[3] = publish   ms from now until it signs, for every instance to know it
-- ARGV[4] = outlive   ms that a key verifies after its successor signs
--
-- Reply:  {'ok', signs_from}             ms since 1970
--         {'rotation_pending', key_id, signs_from}  a key is already waiting to sign
-- Writes: HSET keys, HDEL keys of those that have ended
local keys = KEYS[1]
local key_id, material, publish, outlive = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

--@block now

local stored = redis.call('HGETALL', keys)
for i = 1, #stored, 2 do
  local signs_from = string.match(stored[i + 1], '^%d+ (%d+) ')
  if signs_from and tonumber(signs_from) > now then
    return {'rotation_pending', stored[i], signs_from}
  end
end

if #stored == 0 then
  publish = 0 -- there is no key to sign with until then
end
local signs_from = string.format('%d', now + publish)
local ends = string.format('%d', now + publish + outlive)
redis.call('HDEL', keys, '') -- goes on when Redis is full, see lua.go
for i = 1, #stored, 2 do
  local created, began, old_ends, old_material = string.match(stored[i + 1], '^(%d+) (%d+) (%d+) (.*)$')
  if old_ends == '0' then
    redis.call('HSET', keys, stored[i], created .. ' ' .. began .. ' ' .. ends .. ' ' .. old_material)
  elseif old_ends and tonumber(old_ends) <= now then
    redis.call('HDEL', keys, stored[i])
  end
end
redis.call('HSET', keys, key_id, string.format('%d', now) .. ' ' .. signs_from .. ' 0 ' .. material)
return {'ok', signs_from}
