-- Computes the limits that a session gets: max_actions and max_value are '' to leave a limit, else its value, or '+' and what to
-- add to it. Refuses what would become more than it may.
-- Takes actions_limit, max_actions, max_value, most_actions, most_value, refunds, value_limit. Sets given_back, max_actions,
-- max_committed, max_value, old_max_value.
local given_back, max_committed, old_max_value = read_budget(refunds, value_limit)
if string.sub(max_actions, 1, 1) == '+' then
  max_actions = string.format('%d', actions_limit + string.sub(max_actions, 2))
end
if string.sub(max_value, 1, 1) == '+' then
  max_value = string.format('%d', old_max_value + string.sub(max_value, 2))
end
if max_actions ~= '' and tonumber(max_actions) > tonumber(most_actions) then
  return {'above_bounds', 'max_actions'}
end
if max_value ~= '' and tonumber(max_value) > tonumber(most_value) then
  return {'above_bounds', 'max_value_usd'}
end
