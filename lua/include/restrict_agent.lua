-- Adds a flag to an agent's restricted, which few agents have and which has it not yet: s it is suspended, n its scopes were
-- narrowed, l it has limits (include/agent_limits.lua), which stand behind the flags, o they bound its open sessions. s and n stand
-- before the others.
local function restrict_agent(agent, restricted, flag)
  redis.call('HSET', agent, 'restricted', flag .. (restricted or ''))
end
