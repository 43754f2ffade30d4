-- Reads what a page of an organization's active sessions is made of, newest first: the open sessions, some of which may
-- have expired. While Redis's clock is behind the latest expiry observed, it went back and some closed sessions are
-- active again, so the script reads the closed ones too.
--
-- KEYS[1] = organization     hash o:{cell}:<organization>
-- KEYS[2] = open_sessions    zset oo:{cell}:<organization>
-- KEYS[3] = closed_sessions  zset os:{cell}:<organization>
-- KEYS[4] = latest_expiry    string ox:{cell}:<organization>
--
-- ARGV[1] = credential       the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = before           16-byte id that the page starts below, '' for the newest
-- ARGV[3] = limit            how many ids of each at the most
--
-- Reply:  {'ok', now, open, closed}  now in ms since 1970, open and closed 16-byte ids, one behind the other
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization, open_sessions, closed_sessions, latest_expiry = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local credential, before, limit = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block api_key

--@block newest
local open, closed = redis.call('ZREVRANGEBYLEX', open_sessions, newest, '-', 'LIMIT', 0, limit), {}
if now < tonumber(redis.call('GET', latest_expiry) or 0) then
  closed = redis.call('ZREVRANGEBYLEX', closed_sessions, newest, '-', 'LIMIT', 0, limit)
end
return {'ok', string.format('%d', now), table.concat(open), table.concat(closed)}
