-- Notes that an instance may change agents of an organization: until then the feed's leader does not take it for gone.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = head           hash oeh:{cell}:<organization>
-- KEYS[3] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = instance       its id
-- ARGV[2] = valid_for      ms
-- ARGV[3] = confirmed      what was confirmed to it last, see include/enter.lua
--
-- Reply:  {'ok', until}    in ms since 1970; '' for an organization that is deleted
-- Writes: ZADD instances; HDEL head, of s and l
--@include enter
local organization, head, instances = KEYS[1], KEYS[2], KEYS[3]
local instance, valid_for, confirmed = unpack(ARGV)

--@block now
if redis.call('EXISTS', organization) == 0 then
  return {'ok', ''}
end
return {'ok', enter(head, instances, instance, now, valid_for, confirmed)}
