-- Finds sessions of an agent with a hold that counts in the agent's day and is due, at most 100: release_holds.lua releases
-- them. When none is due, it keeps when the next one will be.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = agent_holds      zset ah:{cell}:<agent>
--
-- Reply:  {'ok', sessions}  an array of their ids as text
-- Writes: HSET and HDEL agent
local agent, agent_holds = KEYS[1], KEYS[2]

--@block now

local due = redis.call('ZRANGEBYSCORE', agent_holds, '-inf', string.format('%d', now), 'LIMIT', 0, 100)
if #due == 0 then
  local next_hold = redis.call('ZRANGE', agent_holds, 0, 0, 'WITHSCORES')[2]
  redis.call('HDEL', agent, 'hold_due')
  if next_hold and redis.call('EXISTS', agent) == 1 then
    redis.call('HSET', agent, 'hold_due', next_hold)
  end
end
return {'ok', due}
