-- Keeps a key as the first of its kind, unless there is one already: of several instances that start together one makes
-- the key that all of them use.
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

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

if redis.call('EXISTS', keys) == 0 then
  redis.call('HSET', keys, key_id, now .. ' ' .. now .. ' 0 ' .. material)
end
return {'ok'}
