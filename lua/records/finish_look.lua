-- Notes that the leader of an organization's feed has looked at all agents and marked those that it must read. Instances
-- that were gone settle ms before it began need no further look, nor those that entered before the clock went back. A look
-- during which an instance found a mark lost may have missed the agent: it changes nothing.
--
-- KEYS[1] = head           hash oeh:{cell}:<organization>
-- KEYS[2] = instances      zset oei:{cell}:<organization>
--
-- ARGV[1] = token          of the leader
-- ARGV[2] = began          ms since 1970, of the reply of take_agents.lua
-- ARGV[3] = settle         ms, see include/look_due.lua
--
-- Reply:  {'ok'}
--         {'feed_lost'}    another one leads
-- Writes: HSET and HDEL head, ZREM instances
local head, instances = KEYS[1], KEYS[2]
local token, began, settle = unpack(ARGV)

if redis.call('HGET', head, 't') ~= token then
  return {'feed_lost'}
end
if redis.call('HGET', head, 'l') ~= began then
  return {'ok'}
end
redis.call('HSET', head, 's', began)
redis.call('HDEL', head, 'l')
local function forget(from, to)
  for _, instance in ipairs(redis.call('ZRANGEBYSCORE', instances, from, to)) do
    redis.call('ZREM', instances, instance)
  end
end
forget('-inf', string.format('%d', began - settle))
forget(string.format('(%d', began + settle), '+inf')
return {'ok'}
