-- Does nothing once the day is over on which the session's usage counts (include/fold_usage.lua): release_holds.lua goes first. a
-- is nil for an operation without a session.
if $a and now >= ($d or 0) * 86400000 then
  return {'holds_due'}
end
