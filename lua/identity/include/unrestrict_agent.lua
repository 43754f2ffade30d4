-- Takes a flag away from an agent's restricted, which has it; see include/restrict_agent.lua. Returns restricted after it, nil
-- for none.
local function unrestrict_agent(agent, restricted, flag)
  local left = string.gsub(restricted, flag, '')
  if left == '' then
    redis.call('HDEL', agent, 'restricted')
    return nil
  end
  redis.call('HSET', agent, 'restricted', left)
  return left
end
