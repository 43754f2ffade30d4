-- Reads all webhooks of an organization and their progress.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = webhooks      hash ow:{cell}:<organization>
-- KEYS[3] = progress      hash owp:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok', now, stored, reached, caller_role}  in ms since 1970; both arrays of names and values: webhook (16 bytes) to
--                                       settings or to progress; 1 viewer, 2 operator, 3 admin
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
-- Writes: nothing
local organization, webhooks, progress = KEYS[1], KEYS[2], KEYS[3]
local credential = ARGV[1]

--@block now
--@block api_key
local stored, reached = redis.call('HGETALL', webhooks), redis.call('HGETALL', progress)
return {'ok', string.format('%d', now), stored, reached, caller_role}
