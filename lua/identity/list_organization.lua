-- Reads one page of an organization's index (its agents, open sessions or transactions), newest first.
-- Ids are UUIDv7 and all scores are 0, so the order of the bytes is the order of creation.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = index         zset oa:, oo: or ot:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = before        16-byte id that the page starts below, '' for the newest
-- ARGV[3] = limit         how many ids at the most
--
-- Reply:  {'ok', now, ids}  now in ms since 1970, ids the 16-byte ids, one behind the other
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization, index = KEYS[1], KEYS[2]
local credential, before, limit = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block api_key

--@block newest
return {'ok', string.format('%d', now), table.concat(redis.call('ZREVRANGEBYLEX', index, newest, '-', 'LIMIT', 0, limit))}
