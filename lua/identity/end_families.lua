-- Marks some of the families that rotate_agent_secret.lua has revoked, so that their access tokens stop working, and drops
-- them from the index. The caller repeats it until none is left. Families of the agent's current epoch stay.
--
-- KEYS[1] = agent     hash a:{cell}:<agent>
-- KEYS[2] = families  zset af:{cell}:<agent>
--
-- ARGV[1] = cell      2 bytes, which members of the index leave out
-- ARGV[2] = mark_ttl  ms that a mark must outlive, so that no access token of the family outlives it
-- ARGV[3] = limit     how many at the most, a few hundred
--
-- Reply:  {'ok', members}  those that it marked, an array of 14-byte strings
-- Writes: HSET agent, ZREM families
--@include family_score
local agent, families = KEYS[1], KEYS[2]
local cell, mark_ttl, limit = ARGV[1], tonumber(ARGV[2]), ARGV[3]

--@block now

local epoch = tonumber(redis.call('HGET', agent, 'epoch') or 0)
local members = redis.call('ZRANGEBYSCORE', families, '-inf', '(' .. family_score(epoch, 0), 'LIMIT', 0, limit)
if #members > 0 then
  local marked_until = string.format('%d', now + mark_ttl)
  local marks = {}
  for _, member in ipairs(members) do
    for _, kind in ipairs({'family:', 'bound:'}) do -- see block/mark_family.lua
      marks[#marks + 1] = kind .. member .. cell
      marks[#marks + 1] = marked_until
    end
  end
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', agent, unpack(marks))
  redis.call('ZREM', families, unpack(members))
end
return {'ok', members}
