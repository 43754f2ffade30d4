-- Shows what is set aside for children (include/parts.lua) as delegated: takes it off the actions and the value used, and puts
-- it behind refunds.
-- Takes session.
if $restrictions and string.find($restrictions, 'c', 1, true) then
  --@read session session_delegated_actions session_delegated_value
  $actions, $value = string.format('%.0f', $actions - session_delegated_actions), string.format('%.0f',
    $value - session_delegated_value)
  $refunds = $refunds .. ' ' .. session_delegated_actions .. ' ' .. session_delegated_value
end
