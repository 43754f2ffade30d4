-- Lists the open and the last closed children of a session, at most 1,000 of each.
--
-- KEYS[1] = looks            zset sc:{cell}:<session>
-- KEYS[2] = closed           zset sd:{cell}:<session>
--
-- Reply:  {'ok', open, closed}  16-byte ids, one behind the other
-- Writes: nothing
local looks, closed = KEYS[1], KEYS[2]
return {'ok', table.concat(redis.call('ZRANGE', looks, 0, -1)), table.concat(redis.call('ZRANGE', closed, 0, -1))}
