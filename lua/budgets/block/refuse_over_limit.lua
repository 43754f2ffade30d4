-- Sets over to the limit of the session that $actions used, or $value used and held, would exceed, nil or false for none; and refused
-- to whether the session refuses because of it, rather than observes. Notes the first refusal by each limit. over_p is
-- 'max_value_usd_per_action' if the action exceeds that; limit is the name of max_v.
-- Takes audit, events, flags, limit, max_n, max_v, now, over, over_p, restrictions, session. Sets flags, over, over_n, over_v,
-- refused.
local over_n, over_v = $actions > max_n and 'max_actions', $value > max_v and limit
over = over_p or over_n or over_v
local refused = over and not observes(restrictions, $actions, $value, max_n, max_v)
if refused then
  over = refusing(restrictions, over_p, over_n, over_v)
  local flag = over == over_p and 'P' or over == over_n and 'N' or 'V'
  flags = note(session, events, audit, now, flags, flag, 'session.limit_reached', 'limit', over)
end
