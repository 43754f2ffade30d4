-- Moves sessions that are no longer active from their organization's open ones to its closed ones. A session never comes
-- back, so it may be moved again: once it is closed that changes nothing.
--
-- KEYS[1] = open_sessions    zset oo:{cell}:<organization>
-- KEYS[2] = closed_sessions  zset os:{cell}:<organization>
--
-- ARGV[1] = first_session    16 bytes, and what follows it: further sessions, at most a few hundred
--
-- Reply:  {'ok'}
-- Writes: ZADD closed_sessions, then ZREM open_sessions
local open_sessions, closed_sessions = KEYS[1], KEYS[2]
local first_session = ARGV[1]

local entries = {0, first_session}
for i = 2, #ARGV do
  entries[#entries + 1] = 0
  entries[#entries + 1] = ARGV[i]
end
redis.call('ZADD', closed_sessions, unpack(entries))
redis.call('ZREM', open_sessions, unpack(ARGV))
return {'ok'}
