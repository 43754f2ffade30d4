-- Returns parts whose children the service may look at again, the one that waits longest first, and notes that it looks now.
--
-- KEYS[1] = parts            hash sp:{cell}:<session>, or op:{cell}:<organization>
-- KEYS[2] = looks            zset sc:{cell}:<session>, or ol:{cell}:<organization>
--
-- ARGV[1] = most             parts to return
-- ARGV[2] = pause            ms until it may look at them again
-- ARGV[3] = on_its_way       ms after a part was set aside in which its session may still be created
--
-- Reply:  {'ok', children}  for each its id (16 bytes), its part (include/parts.lua), and '1' unless its session may still be created
-- Writes: ZADD looks
--@include parts
local parts, looks = KEYS[1], KEYS[2]
local most, pause, on_its_way = ARGV[1], ARGV[2], ARGV[3]

--@block now

local children = {}
local again = string.format('%.0f', now + pause)
for _, child in ipairs(redis.call('ZRANGEBYSCORE', looks, '-inf', string.format('%.0f', now), 'LIMIT', 0, most)) do
  local part = redis.call('HGET', parts, child) or ''
  local _, _, since = read_part(part)
  children[#children + 1] = child
  children[#children + 1] = part
  children[#children + 1] = since and now < since + on_its_way and '' or '1'
  redis.call('ZADD', looks, again, child)
end
return {'ok', children}
