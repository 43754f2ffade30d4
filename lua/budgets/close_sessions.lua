-- Moves sessions that are no longer active from their organization's open sessions to its closed ones. A session that
-- was ended or revoked never becomes active again. An expired one does when Redis's clock goes back, so the script
-- notes the latest expiry: before that time list_active_sessions.lua reads the closed sessions too. Moving a
-- session again changes nothing.
--
-- KEYS[1] = open_sessions    zset oo:{cell}:<organization>
-- KEYS[2] = closed_sessions  zset os:{cell}:<organization>
-- KEYS[3] = latest_expiry    string ox:{cell}:<organization>
--
-- ARGV[1] = latest           ms since 1970 at which the last of those that have expired did; '' for none
-- ARGV[2] = ttl              ms that it is kept: as long as such a session
-- ARGV[3] = first_session    16 bytes, and what follows it: further sessions, at most a few hundred
--
-- Reply:  {'ok'}
-- Writes: SET latest_expiry, then ZADD closed_sessions, then ZREM open_sessions
local open_sessions, closed_sessions, latest_expiry = KEYS[1], KEYS[2], KEYS[3]
local latest, ttl, first_session = ARGV[1], ARGV[2], ARGV[3]

if latest ~= '' and tonumber(latest) > tonumber(redis.call('GET', latest_expiry) or -1) then
  redis.call('SET', latest_expiry, latest, 'PX', ttl)
end
local entries = {0, first_session}
for i = 4, #ARGV do
  entries[#entries + 1] = 0
  entries[#entries + 1] = ARGV[i]
end
redis.call('ZADD', closed_sessions, unpack(entries))
redis.call('ZREM', open_sessions, unpack(ARGV, 3))
return {'ok'}
