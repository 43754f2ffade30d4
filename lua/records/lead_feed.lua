-- Makes the caller the leader of an organization's feed, if there is work that no leader does. Of an organization that is deleted it
-- removes what instances have left since.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = head           hash oeh:{cell}:<organization>
-- KEYS[3] = marked         zset oem:{cell}:<organization>
-- KEYS[4] = taken          zset oet:{cell}:<organization>
-- KEYS[5] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = lease          ms
-- ARGV[2] = settle         ms, see include/look_due.lua
--
-- Reply:  {'ok', token, last_number, last_hash, wakes_from, due_from, rest}
--             token is '' when there is nothing to do for the caller; number and hash of the last
--                          event; wakes_from and due_from as in include/lead.lua; rest is '' when nothing is left to do and no
--                          instance may change agents
-- Writes: HSET head, ZADD marked and DEL taken, of the leader; UNLINK all four of a deleted organization
--@include lead
--@include look_due
local organization, head, marked, taken, instances = unpack(KEYS)
local lease, settle = unpack(ARGV)

--@block now
if redis.call('EXISTS', organization) == 0 then
  redis.call('UNLINK', head, marked, taken, instances)
  return {'ok', '', '0', '', '', '', ''}
end
local work = redis.call('ZCARD', marked) + redis.call('ZCARD', taken) + redis.call('HEXISTS', head, 'w')
  + redis.call('HEXISTS', head, 'd')
local entered = redis.call('ZCARD', instances)
if work == 0 and (entered == 0 or not look_due(head, instances, now, settle)) then
  return {'ok', '', '0', '', '', '', entered > 0 and '1' or ''}
end
local token, last_number, last_hash, wakes_from, due_from = lead(head, marked, taken, now, lease, '')
return {'ok', token, last_number, last_hash, wakes_from, due_from, '1'}
