-- Enters a coming child session in its organization's index, for an agent that creates it, as index_session.lua does for an API
-- key. The caller's access token was checked.
--
-- KEYS[1] = open_sessions  zset oo:{cell}:<organization>
--
-- ARGV[1] = session_id     16 bytes
-- ARGV[2] = quota          how many of them the organization may have, '' for any number
--
-- Reply:  {'ok'}
--         {'over_quota', name, used, quota}
-- Writes: ZADD open_sessions
local open_sessions = KEYS[1]
local session_id, quota = ARGV[1], ARGV[2]

--@block refuse_over_quota index=open_sessions
redis.call('ZADD', open_sessions, 0, session_id)
return {'ok'}
