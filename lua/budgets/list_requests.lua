-- Reads all of a session's requests for more, in no order, and what their status depends on. They are at most 40.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = requests         hash rq:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
--
-- Reply:  {'ok', now, ended_at, revoked, expires_at, fields}
--             times in ms since 1970, '' if it has not happened; fields the names and values of
--                                         the hash, see include/requests.lua
--         {'unknown_agent'}
--         {'invalid_token'}               the access token's agent or family is revoked
--         {'unknown_session'}
-- Writes: nothing
local agent, session, requests = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block either_caller session=session

--@read session session_agent expires_at ended_at
--@block refuse_unknown_session
return {'ok', string.format('%d', now), ended_at or '', agent_revoked or '', expires_at, redis.call('HGETALL', requests)}
