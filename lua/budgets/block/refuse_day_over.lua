-- Does nothing once the day is over on which the session's usage counts (include/fold_usage.lua): release_holds.lua goes first. a
-- is nil for an operation without a session. Both times are seconds of ten digits, until the year 2286.
if $a and (not $d or time[1] >= $d) then
  return {'holds_due'}
end
