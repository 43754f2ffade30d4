-- Reads one page of a list in an agent's cell, newest first.
-- Ids are UUIDv7 and all scores are 0, so the order of the bytes is the order of creation. A member is an id without its
-- last two bytes, which are the cell.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = list             zset as:{cell}:<agent>, at:{cell}:<agent> or stx:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[3] = before           member that the page starts below, '' for the newest
-- ARGV[4] = limit            how many members at the most
--
-- Reply:  {'ok', now, members}  now in ms since 1970, members of 14 bytes, one behind the other
--         {'unknown_agent'}
--         {'invalid_token'}  the access token's agent or family is revoked
-- Writes: nothing
local agent, list = KEYS[1], KEYS[2]
local organization_id, caller_family, before, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now
--@block either_caller session=agent

--@block newest
return {'ok', string.format('%d', now), table.concat(redis.call('ZREVRANGEBYLEX', list, newest, '-', 'LIMIT', 0, limit))}
