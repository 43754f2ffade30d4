-- Takes what is due in an organization, for an instance that records it: removes the chunks with which that is done, adds what is to be
-- looked at again, and returns those that are due now. They stay until the next call, so that nothing is lost with an instance.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = due            zset odu:{cell}:<organization>
--
-- ARGV[1] = most           chunks to return
-- ARGV[2] = again          entries with their times, see include/due.lua
-- ARGV[3] = first_done     a chunk, and what follows it: further chunks; none may be there
--
-- Reply:  {'ok', now, chunks, first, oldest}  in ms since 1970; first and oldest when the first is due that stays, and the first of
--                          the chunks, '' for nothing
-- Writes: ZREM and ZADD due; UNLINK it, of an organization that is deleted
--@include due
local organization, due = KEYS[1], KEYS[2]
local most, again, first_done = ARGV[1] + 0, ARGV[2], ARGV[3]

--@block now
if redis.call('EXISTS', organization) == 0 then
  redis.call('UNLINK', due)
  again = ''
end
if first_done then
  redis.call('ZREM', due, unpack(ARGV, 3))
end
if again ~= '' then
  add_due(due, now, again)
end
local oldest = first_due(due)
local chunks, first = {}, oldest
if most > 0 and oldest and oldest + 0 <= now then
  chunks = redis.call('ZRANGEBYSCORE', due, '-inf', string.format('%d', now), 'LIMIT', 0, most)
  first = redis.call('ZRANGE', due, #chunks, #chunks, 'WITHSCORES')[2]
end
return {'ok', string.format('%d', now), chunks, first or '', #chunks > 0 and oldest or ''}
