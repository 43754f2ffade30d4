-- Reads what a page of an organization's sessions is made of, newest first. It reads open and closed sessions in one
-- step, so that a session that moves is in one of them. The caller merges them: Lua compares strings by the server's
-- locale, not by their bytes.
--
-- KEYS[1] = organization     hash o:{cell}:<organization>
-- KEYS[2] = open_sessions    zset oo:{cell}:<organization>
-- KEYS[3] = closed_sessions  zset os:{cell}:<organization>
--
-- ARGV[1] = credential       the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = before           16-byte id that the page starts below, '' for the newest
-- ARGV[3] = limit            how many ids of each at the most
--
-- Reply:  {'ok', now, open, closed}  now in ms since 1970, open and closed 16-byte ids, one behind the other
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization, open_sessions, closed_sessions = KEYS[1], KEYS[2], KEYS[3]
local credential, before, limit = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block api_key

--@block newest
local open = redis.call('ZREVRANGEBYLEX', open_sessions, newest, '-', 'LIMIT', 0, limit)
local closed = redis.call('ZREVRANGEBYLEX', closed_sessions, newest, '-', 'LIMIT', 0, limit)
return {'ok', string.format('%d', now), table.concat(open), table.concat(closed)}
