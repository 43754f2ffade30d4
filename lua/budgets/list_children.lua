-- Lists the open and the last closed children of a session, at most 1,000 of each.
--
-- KEYS[1] = looks            zset sc:{cell}:<session>
-- KEYS[2] = closed           zset sd:{cell}:<session>
--
-- ARGV[1] = last             '-1' for all of them, '0' for one of each: to know whether there is any
--
-- Reply:  {'ok', open, closed}  16-byte ids, one behind the other
-- Writes: nothing
local looks, closed = KEYS[1], KEYS[2]
local last = ARGV[1]
return {'ok', table.concat(redis.call('ZRANGE', looks, 0, last)), table.concat(redis.call('ZRANGE', closed, 0, last))}
