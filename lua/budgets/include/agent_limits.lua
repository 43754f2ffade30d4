-- Counts what an agent does by its limits, over all of its sessions. They stand with what is left of them behind the flags of
-- its field restricted, so a charge reads no field more for them: '<flags> <max_v> <max_n> <day> <left> <tat>'. max_v is micro-USD
-- for a UTC day, max_n actions for a minute, '' for none. day is the last one, in days since 1970, on which something counted, and
-- left the micro-USD that are left of it, below 0 for what went beyond; '' without max_v. tat is the theoretical arrival time of GCRA
-- since the start of the day, in steps of 1/max_n ms: each action moves it by 60000, so it is a whole number; '' without max_n. Without
-- l among the flags nothing follows them.
-- within_limits returns restricted after n actions with the value v; or nil, the limit that refuses them and, as text, when
-- they fit: for a day when it ends, for a minute ms from now, '' for never. It returns a limit also when they use the rest of a day.
-- While the session observes, it counts them beyond the limits as well, of a minute as much as it allows, and returns fourth and fifth
-- the limits that would have refused them, nil for none. Sixth is whether they cross a threshold of the day (include/agent_limit_notes.lua).
local function within_limits(restricted, now, n, v, observing)
  local count, value, restricted_after, agent_limit, at, observed_day, observed_minute, crossed = n + 0, v + 0, nil, nil, nil, nil, nil, nil
  --@block count_by_limits restricted=restricted
  return restricted_after, agent_limit, at, observed_day, observed_minute, crossed
end
