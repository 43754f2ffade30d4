-- Sets actions_limit and value_limit, which the caller writes, to the limits of block/new_limits.lua; clears the flags of what is
-- noted again, and adds to
-- changed what the audit trail says. Writes refunds.
-- Takes actions_limit, changed, flags, given_back, held_value, max_actions, max_committed, max_value, refunds, session,
-- used_actions, used_value, value_limit. Sets actions_limit, flags, max_committed, refunds, value_limit.
if max_actions ~= '' then
  actions_limit, flags = max_actions, string.gsub(flags, '[nNa]', '')
  flags = forget_thresholds(flags, 'A', used_actions + 0, actions_limit + 0)
  changed[#changed + 1] = 'max_actions'
  changed[#changed + 1] = max_actions
end
if max_value ~= '' then
  flags = string.gsub(flags, '[vVbc]', '')
  if max_committed then
    if tonumber(max_value) > tonumber(max_committed) and redis.call('HEXISTS', session, 'mf') == 1 then
      max_committed = max_value -- it has max_committed only because its parent does
    end
    refunds, value_limit = write_budget(given_back, max_committed, max_value)
    redis.call('HSET', session, 'gb', refunds)
  else
    value_limit = max_value
  end
  flags = forget_thresholds(flags, 'B', used_value + held_value, value_limit + 0)
  changed[#changed + 1] = 'max_value'
  changed[#changed + 1] = max_value
end
