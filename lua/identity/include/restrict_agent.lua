-- Adds a flag to an agent's restricted, which few agents have and which has it not yet: s it is suspended, n its scopes were
-- narrowed, p its tokens must be bound to a key (dpop_required), e all its tokens were revoked at a time (field epoch), l it has limits
-- (budgets/include/agent_limits.lua), which stand behind the flags, o they bound its open sessions. s and n stand before the others:
-- restrict_tokens adds p or e behind them, and returns restricted after it.
local function restrict_agent(agent, restricted, flag)
  redis.call('HSET', agent, 'restricted', flag .. (restricted or ''))
end

local function restrict_tokens(agent, restricted, flag)
  restricted = string.gsub(restricted or '', '^[sn]*', '%0' .. flag, 1)
  redis.call('HSET', agent, 'restricted', restricted)
  return restricted
end
