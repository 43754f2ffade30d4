-- Marks agents whose audit trails may have new events, and makes the caller the leader of their organization's feed
-- unless another one is. Marking again changes nothing.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = head           hash oeh:{cell}:<organization>
-- KEYS[3] = marked         zset oem:{cell}:<organization>
-- KEYS[4] = taken          zset oet:{cell}:<organization>
-- KEYS[5] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = agents         their ids as text, each in a line
-- ARGV[2] = instance       the caller's id
-- ARGV[3] = valid_for      ms, see enter_feed.lua
-- ARGV[4] = lease          ms
-- ARGV[5] = own            token that the caller got last for this feed, '' for none
-- ARGV[6] = confirmed      what was confirmed to the caller last, see include/enter.lua
--
-- Arguments: the agents, what the caller is and what it knows; one command is all or nothing.
--
-- Reply:  {'ok', token, last_number, last_hash, wakes_from, due_from, until}
--             token is '' when another one leads, or the organization is deleted; number and hash of the
--                          last event; wakes_from and due_from as in include/lead.lua; until as in enter_feed.lua
-- Writes: ZADD marked and instances; HSET and HDEL head; DEL taken, of the leader
--@include lead
--@include enter
local organization, head, marked, taken, instances = unpack(KEYS)
local agents, instance, valid_for, lease, own, confirmed = unpack(ARGV)

--@block now
if redis.call('EXISTS', organization) == 0 then
  return {'ok', '', '0', '', '', '', ''}
end
local entered_until = enter(head, instances, instance, now, valid_for, confirmed)
for agent in string.gmatch(agents, '(%S+)\n') do
  redis.call('ZADD', marked, 'NX', string.format('%d', now), agent)
end
local token, last_number, last_hash, wakes_from, due_from = lead(head, marked, taken, now, lease, own)
return {'ok', token, last_number, last_hash, wakes_from, due_from, entered_until}
