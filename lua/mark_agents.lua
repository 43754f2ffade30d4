-- Marks agents whose audit trails may have new events, and makes the caller the leader of their organization's feed
-- unless another one is. Marking again changes nothing.
--
-- KEYS[1] = head           hash oeh:{cell}:<organization>
-- KEYS[2] = marked         zset oem:{cell}:<organization>
-- KEYS[3] = taken          zset oet:{cell}:<organization>
-- KEYS[4] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = agents         their ids as text, each in a line
-- ARGV[2] = instance       the caller's id
-- ARGV[3] = valid_for      ms, see enter_feed.lua
-- ARGV[4] = lease          ms
-- ARGV[5] = own            token that the caller got last for this feed, '' for none
--
-- Reply:  {'ok', token, n, h, w}  token is '' when another one leads; number and hash of the last event; w as in include/lead.lua
-- Writes: ZADD marked and instances; HSET head and DEL taken, of the leader
--@include lead
local head, marked, taken, instances = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local agents, instance, valid_for, lease, own = unpack(ARGV)

--@block now
redis.call('ZADD', instances, string.format('%d', now + valid_for), instance)
for agent in string.gmatch(agents, '(%S+)\n') do
  redis.call('ZADD', marked, 'NX', string.format('%d', now), agent)
end
local token, n, h, w = lead(head, marked, taken, now, lease, own)
return {'ok', token, n, h, w}
