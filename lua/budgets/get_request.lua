-- Reads a request for more and what its status depends on.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = requests         hash rq:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = request_id       16 bytes
--
-- Reply:  {'ok', now, ended_at, revoked, expires_at, newest, found}
--             times in ms since 1970, '' if it has not happened; newest the id of the
--                                                agent's newest event, '' for none: a decision comes with a later one; found
--                                                the record, see include/requests.lua
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'unknown_session'}
--         {'unknown_request'}
-- Writes: nothing
local agent, session, requests, events = unpack(KEYS)
local organization_id, agent_id, caller_family, request_id = unpack(ARGV)

--@block now
--@block either_caller session=session

--@read session session_agent expires_at ended_at
--@block refuse_unknown_session
local found = redis.call('HGET', requests, request_id)
if not found then
  return {'unknown_request'}
end
local newest = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1] or {''}
return {'ok', string.format('%d', now), ended_at or '', agent_revoked or '', expires_at, newest[1], found}
