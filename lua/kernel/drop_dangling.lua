-- Drops entries of an index whose objects do not exist. An entry is written before its object, so the object may still
-- be coming: the script drops only an entry that was seen without its object long enough ago by Redis's clock. The time
-- in the id does not count, because it is by another clock. An entry among the closed sessions has had its object, and
-- is dropped at once.
--
-- KEYS[1] = index            zset oa:, oo: or ot:{cell}:<organization>
-- KEYS[2] = closed_sessions  zset os:{cell}:<organization>
-- KEYS[3] = suspects         zset oad:, ood: or otd:{cell}:<organization>
--
-- ARGV[1] = wait             ms between the first sight and the drop
-- ARGV[2] = ttl              ms that suspects are kept after the last was added
-- ARGV[3] = first_entry      16 bytes, and what follows it: further entries, at most a few hundred
--
-- Reply:  {'ok'}
-- Writes: ZREM index, closed_sessions and suspects; ZADD and PEXPIRE suspects
local index, closed_sessions, suspects = KEYS[1], KEYS[2], KEYS[3]
local wait, ttl, first_entry = tonumber(ARGV[1]), ARGV[2], ARGV[3]

--@block now

local gone, fresh = {}, {}
local entry, i = first_entry, 3
while entry do
  local seen = tonumber(redis.call('ZSCORE', suspects, entry) or now + 1)
  if redis.call('ZSCORE', closed_sessions, entry) or now - seen >= wait then
    gone[#gone + 1] = entry
  elseif seen > now then -- seen for the first time, or before the clock went back
    fresh[#fresh + 1] = string.format('%d', now)
    fresh[#fresh + 1] = entry
  end
  i = i + 1
  entry = ARGV[i]
end
if #gone > 0 then
  redis.call('ZREM', index, unpack(gone))
  redis.call('ZREM', closed_sessions, unpack(gone))
  redis.call('ZREM', suspects, unpack(gone))
end
if #fresh > 0 then
  redis.call('ZADD', suspects, unpack(fresh))
  redis.call('PEXPIRE', suspects, ttl)
end
return {'ok'}
