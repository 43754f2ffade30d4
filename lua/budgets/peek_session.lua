-- Reads a session when Redis refuses every write: as get_session.lua, but it notes nothing. The caller subtracts the
-- holds that are due and cannot be released, and counts the leases as spent that have expired.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = holds            zset sh:{cell}:<session>
-- KEYS[4] = leases           zset sl:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = skip             how many of the holds that are due are counted already
-- ARGV[5] = most             how many of them to count at the most
--
-- Reply:  {'ok', now, revoked, scopes, session, counted, due, lapsed}  as get_session.lua; and how many holds were counted,
--                                                              their sum, and that of the leases, in micro-USD
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'unknown_session'}
-- Writes: nothing
local agent, session, holds, leases = unpack(KEYS)
local organization_id, agent_id, caller_family, skip, most = unpack(ARGV)

--@block now
--@block either_caller_with_scopes session=session

--@block session_state
--@block refuse_unknown_session
local read_at = string.format('%d', now)
local counted, due = 0, 0
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', holds, '-inf', read_at, 'LIMIT', skip, most)) do
  counted, due = counted + 1, due + tonumber(string.sub(hold, 17))
end
local lapsed = 0
for _, lease in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', read_at)) do
  lapsed = lapsed + string.match(lease, '^%d+ (%d+)', 17)
end
counted, due, lapsed = string.format('%d', counted), string.format('%d', due), string.format('%d', lapsed)
return {'ok', read_at, agent_revoked or '', agent_scopes, state, counted, due, lapsed}
