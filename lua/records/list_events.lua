-- Reads a page of an agent's audit trail, oldest first.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[3] = after            id of the event that the page starts after, '' for the oldest
-- ARGV[4] = limit            how many events at the most
--
-- Reply:  {'ok', page}       an array of events, each an array of its id and an array of names and values
--         {'unknown_agent'}
--         {'invalid_token'}  the access token's agent or family is revoked
-- Writes: nothing
local agent, events = KEYS[1], KEYS[2]
local organization_id, caller_family, after, limit = unpack(ARGV)

--@block either_caller session=agent

local oldest = '-'
if after ~= '' then
  oldest = '(' .. after
end
return {'ok', redis.call('XRANGE', events, oldest, '+', 'COUNT', limit)}
