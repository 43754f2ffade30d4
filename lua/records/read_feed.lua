-- Reads a page of an organization's events, oldest first, and where they end.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = head           hash oeh:{cell}:<organization>
-- KEYS[3] = feed           stream oe:{cell}:<organization>
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = after          number of the event that the page starts after, 0 for the oldest
-- ARGV[3] = limit          how many events at the most
--
-- Reply:  {'ok', last_number, last_hash, page}
--             number and hash of the last event, 0 and '' for none; an array of events, each an array of its id and
--                          an array of names and values: y its type, e itself in JSON
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization, head, feed = KEYS[1], KEYS[2], KEYS[3]
local credential, after, limit = unpack(ARGV)

--@block now
--@block api_key
--@read head last_number last_hash
return {'ok', last_number or '0', last_hash or '', redis.call('XRANGE', feed, '(' .. after .. '-0', '+', 'COUNT', limit)}
