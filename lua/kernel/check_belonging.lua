-- Checks whether a transaction or a lease belongs to a session. It never changes to which one.
--
-- KEYS[1] = belonging   hash t:{cell}:<transaction> or l:{cell}:<lease>
--
-- ARGV[1] = session_id  16 bytes
--
-- Reply:  {'ok'}
--         {'unknown_session'}  it does not, or does not exist
-- Writes: nothing
local belonging, session_id = KEYS[1], ARGV[1]

if redis.call('HGET', belonging, 's') ~= session_id then
  return {'unknown_session'}
end
return {'ok'}
