-- Answers a charge after which the session has used $actions and $value. Trailing values that say nothing are left out.
-- Takes actions_limit, agent_limit, crossed, expires_at, held_value, leased_value, over, refunds, restrictions, scopes_left,
-- session, type_grown, value_limit. Sets held_value, refunds.
--@block show_leased value=$value held=held_value leased=leased_value
--@block show_delegated actions=$actions value=$value refunds=refunds restrictions=restrictions
if type_grown then
  return {'ok', $actions, actions_limit, $value, value_limit, held_value, expires_at, refunds or '', scopes_left or '', over or '', type_grown}
elseif over or crossed or agent_limit then
  return {'ok', $actions, actions_limit, $value, value_limit, held_value, expires_at, refunds or '', scopes_left or '', over or ''}
elseif scopes_left then
  return {'ok', $actions, actions_limit, $value, value_limit, held_value, expires_at, refunds or '', scopes_left}
end
return {'ok', $actions, actions_limit, $value, value_limit, held_value, expires_at, refunds}
