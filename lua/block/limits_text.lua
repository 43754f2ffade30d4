-- Sets $text to the field restricted of an agent with limits; see budgets/include/agent_limits.lua. One of left and tat may be ''.
-- Takes head, left, tat.
if tat == '' then
  $text = head .. string.format(' %d ', left)
elseif left == '' then
  $text = head .. string.format('  %d', tat)
else
  $text = head .. string.format(' %d %d', left, tat)
end
