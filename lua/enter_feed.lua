-- Notes that an instance may change agents of an organization: until then the feed's leader does not take it for gone.
--
-- KEYS[1] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = instance       its id
-- ARGV[2] = valid_for      ms
--
-- Reply:  {'ok'}
-- Writes: ZADD instances
local instances = KEYS[1]
local instance, valid_for = unpack(ARGV)

--@block now
redis.call('ZADD', instances, string.format('%d', now + valid_for), instance)
return {'ok'}
