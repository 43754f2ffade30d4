-- Sets backlog, which is 0, to the work of GCRA that is behind the time elapsed but before tat, in the same unit. More than most, that
-- of a whole minute, is there when the clock was set back. Twice as much says that it was by more than a minute: then nothing counts.
-- Takes backlog, elapsed, most, tat. Sets backlog, behind.
local behind = tat - elapsed
if behind > 0 and behind <= 2 * most then
  backlog = behind
end
