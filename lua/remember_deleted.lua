-- Enters an agent that is to be deleted among those whose usage is kept, and removes up to 100 whose usage is not kept any more.
--
-- KEYS[1] = deleted   zset od:{cell}:<organization>
--
-- ARGV[1] = agent_id  16 bytes
-- ARGV[2] = kept      ms for which it stays
--
-- Reply:  {'ok'}
-- Writes: ZREM, ZADD and PEXPIRE deleted
local deleted = KEYS[1]
local agent_id, kept = ARGV[1], ARGV[2]

--@block now
local old = redis.call('ZRANGEBYSCORE', deleted, '-inf', string.format('%d', now - tonumber(kept)), 'LIMIT', 0, 100)
redis.call('ZREM', deleted, '', unpack(old)) -- goes on when Redis is full, see lua.go: no member is ''
redis.call('ZADD', deleted, string.format('%d', now), agent_id)
redis.call('PEXPIRE', deleted, kept)
return {'ok'}
