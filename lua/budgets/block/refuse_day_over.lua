-- Does nothing once the day is over on which the session's usage counts (include/fold_usage.lua): release_holds.lua goes first.
-- $agent is nil for an operation without a session. Both times are seconds of ten digits, until the year 2286.
-- Takes time.
if $agent and (not $ends or time[1] >= $ends) then
  return {'holds_due'}
end
