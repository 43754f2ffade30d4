-- Takes the agents that were marked first, for the leader of an organization's feed. One that finds none, and no reason
-- to look at all agents, leads no longer.
--
-- KEYS[1] = head           hash oeh:{cell}:<organization>
-- KEYS[2] = marked         zset oem:{cell}:<organization>
-- KEYS[3] = taken          zset oet:{cell}:<organization>
-- KEYS[4] = cursors        hash oec:{cell}:<organization>
-- KEYS[5] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = token          of the leader
-- ARGV[2] = lease          ms
-- ARGV[3] = most           agents, at least 1
-- ARGV[4] = settle         ms, see include/look_due.lua
-- ARGV[5] = woken          number of the last event that the caller has woken the webhooks for, '' for none
-- ARGV[6] = noted          the last due_from (include/lead.lua) that the caller has noted in the queue, '' for none
--
-- Reply:  {'ok', now, agents, cursors, look}  in ms since 1970; ids as text, and for each the id of its last event in the
--                          feed, nil for none; look is '1' when all agents must be looked at, else ''
--         {'feed_lost'}    another one leads
-- Writes: HSET and HDEL head; ZREM marked and ZADD taken
--@include look_due
local head, marked, taken, cursors, instances = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, lease, most, settle, woken, noted = unpack(ARGV)

--@block now
if redis.call('HGET', head, 't') ~= token then
  return {'feed_lost'}
end
if woken ~= '' and redis.call('HGET', head, 'w') == woken then
  redis.call('HDEL', head, 'w')
end
if noted ~= '' and redis.call('HGET', head, 'd') == noted then
  redis.call('HDEL', head, 'd')
end
local agents, look = redis.call('ZRANGE', marked, 0, most - 1), ''
if #agents == 0 and look_due(head, instances, now, settle) then
  look = '1'
  redis.call('HSET', head, 'l', string.format('%d', now))
end
local leads_until = (#agents > 0 or look ~= '') and now + lease or 0
redis.call('HSET', head, 'u', string.format('%d', leads_until))
if #agents == 0 then
  return {'ok', string.format('%d', now), agents, agents, look}
end
local found = redis.call('HMGET', cursors, unpack(agents))
redis.call('ZREM', marked, unpack(agents))
for _, agent in ipairs(agents) do
  redis.call('ZADD', taken, string.format('%d', now), agent)
end
return {'ok', string.format('%d', now), agents, found, look}
