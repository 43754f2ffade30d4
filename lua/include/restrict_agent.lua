-- Adds a flag to an agent's restricted, which few agents have and which has it not yet: s it is suspended, n its scopes were
-- narrowed, l it has limits.
local function restrict_agent(agent, restricted, flag)
  redis.call('HSET', agent, 'restricted', (restricted or '') .. flag)
end
