-- Enters an agent that is to be deleted among those whose usage is kept, and removes up to 100 whose usage is not kept any more, and
-- up to 100 of the oldest beyond the most that are remembered.
--
-- KEYS[1] = deleted   zset od:{cell}:<organization>
--
-- ARGV[1] = agent_id  16 bytes
-- ARGV[2] = kept      ms for which it stays
-- ARGV[3] = most      that are remembered
--
-- Reply:  {'ok'}
-- Writes: ZREM, ZADD and PEXPIRE deleted
local deleted = KEYS[1]
local agent_id, kept, most = ARGV[1], ARGV[2], ARGV[3]

--@block now
local old = redis.call('ZRANGEBYSCORE', deleted, '-inf', string.format('%d', now - tonumber(kept)), 'LIMIT', 0, 100)
redis.call('ZREM', deleted, '', unpack(old)) -- goes on when Redis is full, see lua.go: no member is ''
redis.call('ZADD', deleted, string.format('%d', now), agent_id)
local beyond = math.min(redis.call('ZCARD', deleted) - most, 100)
if beyond > 0 then
  redis.call('ZREM', deleted, unpack(redis.call('ZRANGE', deleted, 0, string.format('%d', beyond - 1))))
end
redis.call('PEXPIRE', deleted, kept)
return {'ok'}
