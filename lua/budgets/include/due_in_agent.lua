-- Enters a session into the index of its agent's sessions by when the next of their holds is due that counts in the agent's day,
-- and keeps the earliest in the agent's field hold_due. Both may be earlier than the next hold is due, never later.
local function enter_due(agent, agent_holds, session, expires)
  local id = string.sub(session, -36)
  if expires + 0 < (redis.call('ZSCORE', agent_holds, id) or math.huge) + 0 then
    redis.call('ZADD', agent_holds, expires, id)
  end
  if expires + 0 < (redis.call('HGET', agent, 'hold_due') or math.huge) + 0 then
    redis.call('HSET', agent, 'hold_due', expires)
  end
end
