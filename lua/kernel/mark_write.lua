-- Writes a small key, so that a WAIT behind it on its connection has a write to wait for, even in a full Redis.
--
-- KEYS[1] = mark      hash w:{cell}
--
-- ARGV[1] = lifetime  of the mark, ms
--
-- Reply:  {'ok'}
-- Writes: HSET mark, then PEXPIRE mark
local mark = KEYS[1]
local lifetime = ARGV[1]

redis.call('HDEL', mark, '')
redis.call('HSET', mark, 'w', '1')
redis.call('PEXPIRE', mark, lifetime)
return {'ok'}
