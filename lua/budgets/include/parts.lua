-- Reads and writes parts: what a session has set aside for an open child, or an organization's budget for a root session. A
-- part is the child's agent (16 bytes), its actions, its value in micro-USD and since when it is set aside (ms since 1970), separated
-- by spaces; or the agent and 'taken' once the child's usage has replaced it. What is set aside is in the used_actions and used_value
-- of the session that gives it; delegated_actions and delegated_value say how much of them it is. See lua/budgets/README.md.
local as_long_as_parts = '315360000000' -- ms, ten years: the TTL of what must not expire before it is settled

local function part_of(agent_id, n, v, since)
  return agent_id .. string.format('%.0f %.0f %.0f', n, v, since)
end

-- Returns the actions, the value and the time of a part that is aside, nothing for one that is taken or does not exist.
local function read_part(part)
  local n, v, since = string.match(part or '', '^(%d+) (%d+) (%d+)$', 17)
  return tonumber(n), tonumber(v), tonumber(since)
end
