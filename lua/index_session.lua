-- Enters a coming session in its organization's index. The entry is written before the session, so that every session
-- is listed; a reader drops an entry without a session.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = open_sessions  zset oo:{cell}:<organization>
--
-- ARGV[1] = key_hash       SHA-256 of the API key presented, 32 bytes
-- ARGV[2] = session_id     16 bytes
-- ARGV[3] = quota          how many of them the organization may have, '' for any number
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'over_quota', name, used, quota}
-- Writes: ZADD open_sessions
local organization, open_sessions = KEYS[1], KEYS[2]
local key_hash, session_id, quota = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block api_key
--@block refuse_over_quota index=open_sessions
redis.call('ZADD', open_sessions, 0, session_id)
return {'ok'}
