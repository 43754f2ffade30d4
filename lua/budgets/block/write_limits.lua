-- Sets ma and mv, which the caller writes, to the limits of block/new_limits.lua; clears the flags of what is noted again, and adds to
-- changed what the audit trail says. Writes gb.
if max_actions ~= '' then
  ma, flags = max_actions, string.gsub(flags, '[nNa]', '')
  flags = forget_thresholds(flags, 'A', n + 0, ma + 0)
  changed[#changed + 1] = 'max_actions'
  changed[#changed + 1] = max_actions
end
if max_value ~= '' then
  flags = string.gsub(flags, '[vVbc]', '')
  if max_committed then
    if tonumber(max_value) > tonumber(max_committed) and redis.call('HEXISTS', session, 'mf') == 1 then
      max_committed = max_value -- it has max_committed only because its parent does
    end
    gb, mv = write_budget(given_back, max_committed, max_value)
    redis.call('HSET', session, 'gb', gb)
  else
    mv = max_value
  end
  flags = forget_thresholds(flags, 'B', v + h, mv + 0)
  changed[#changed + 1] = 'max_value'
  changed[#changed + 1] = max_value
end
