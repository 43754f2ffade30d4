-- Returns parts whose children the service may look at again, the one that waits longest first, and notes that it looks now.
--
-- KEYS[1] = parts            hash sp:{cell}:<session>, or op:{cell}:<organization>
-- KEYS[2] = looks            zset sc:{cell}:<session>, or ol:{cell}:<organization>
--
-- ARGV[1] = most             parts to return
-- ARGV[2] = pause            ms until it may look at them again
--
-- Reply:  {'ok', children}  for each its id (16 bytes) and its part (include/parts.lua)
-- Writes: ZADD looks
local parts, looks = KEYS[1], KEYS[2]
local most, pause = ARGV[1], ARGV[2]

--@block now

local children = {}
local again = string.format('%.0f', now + pause)
for _, child in ipairs(redis.call('ZRANGEBYSCORE', looks, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)) do
  children[#children + 1] = child
  children[#children + 1] = redis.call('HGET', parts, child) or ''
  redis.call('ZADD', looks, again, child)
end
return {'ok', children}
