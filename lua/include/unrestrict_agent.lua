-- Takes a flag away from an agent's restricted, which has it; see include/restrict_agent.lua.
local function unrestrict_agent(agent, restricted, flag)
  local left = string.gsub(restricted, flag, '')
  if left == '' then
    redis.call('HDEL', agent, 'restricted')
  else
    redis.call('HSET', agent, 'restricted', left)
  end
end
