-- Reads and writes parts: what a session has set aside for an open child, or an organization's budget for a root session. A
-- part is the child's agent (16 bytes), its actions, a space and its value in micro-USD; or the agent and 'taken' once the
-- child's usage has replaced it. What is set aside is in the used_actions and used_value of the session that gives it;
-- delegated_actions and delegated_value say how much of them it is. See lua/budgets/README.md.
local as_long_as_parts = '315360000000' -- ms, ten years: the TTL of what must not expire before it is settled

local function part_of(agent_id, n, v)
  return agent_id .. string.format('%.0f', n) .. ' ' .. string.format('%.0f', v)
end

-- Returns the actions and the value of a part that is aside, nothing for one that is taken or does not exist.
local function read_part(part)
  local n, v = string.match(part or '', '^(%d+) (%d+)$', 17)
  return tonumber(n), tonumber(v)
end
