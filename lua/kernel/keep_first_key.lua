-- Stores a key as the first of its kind, unless there is one: when several instances start together, one makes the key
-- that all of them use.
--
-- KEYS[1] = keys      hash k:<kind>
--
-- ARGV[1] = key_id
-- ARGV[2] = material  as it is to be kept
--
-- Reply:  {'ok'}
-- Writes: HSET keys, once in its life
local keys = KEYS[1]
local key_id, material = ARGV[1], ARGV[2]

--@block now

if redis.call('EXISTS', keys) == 0 then
  local created = string.format('%d', now)
  redis.call('HSET', keys, key_id, created .. ' ' .. created .. ' 0 ' .. material)
end
return {'ok'}
