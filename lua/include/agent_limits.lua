-- Counts what an agent does by its limits, over all of its sessions. They stand with what is used of them behind the flags of
-- its field restricted, so a charge reads no field more for them: '<flags> <max_v> <max_n> <day> <used> <at> <backlog>'.
-- max_v is micro-USD for a UTC day, max_n actions for a minute, '' for none; day is the last one, in days since 1970, on which
-- value counted, and used its micro-USD. backlog is the theoretical arrival time of GCRA as work: 60000 for each action at the
-- time at, of which max_n is done in each ms, so it is a whole number. Without l among the flags nothing follows them.
-- within_limits returns restricted after n actions with the value v; or nil, the limit that refuses them and, as text, when
-- they fit: for a day when it ends, for a minute ms from now, '' for never. It returns a limit also when they use the rest of a day.
-- While the session observes, it counts them beyond the limits as well, of a minute as much as it allows, and returns fourth and fifth
-- the limits that would have refused them, false for none.
local function within_limits(restricted, now, n, v, observing)
  local flags, max_v, max_n, day, used, at, backlog = string.match(restricted, '^(%a+) (%d*) (%d*) (%d+) (%d+) (%d+) (%d+)$')
  if not flags then
    return nil
  end
  local today, limit, over_day, over_minute = math.floor(now / 86400000), nil, false, false
  if today > day + 0 then -- a clock that goes back over midnight does not empty a day
    day, used = today, 0
  end
  if max_v ~= '' and v + 0 > 0 then
    used = math.min(used + v, 9007199254740991) -- what a double counts exactly
    over_day = used > max_v + 0 and 'max_value_usd_per_day'
    if over_day and not observing then
      return nil, over_day, string.format('%d', (day + 1) * 86400000)
    elseif used >= max_v + 0 then
      limit = 'max_value_usd_per_day'
    end
  end
  if max_n ~= '' and n + 0 > 0 then
    if at - now > 60000 then
      backlog = 0 -- the clock was set back
    end
    backlog = math.max(backlog - math.max(now - at, 0) * max_n, 0) + n * 60000
    local over = backlog - max_n * 60000
    over_minute = over > 0 and 'max_actions_per_minute'
    if over_minute and not observing then
      return nil, over_minute, n + 0 > max_n + 0 and '' or string.format('%d', math.ceil(over / max_n))
    end
    backlog, at = math.min(backlog, max_n * 60000), now
  end
  if max_n == '' then
    return string.format('%s %s  %d %d 0 0', flags, max_v, day, used), limit, nil, over_day, over_minute
  end
  return string.format('%s %s %s %d %d %d %d', flags, max_v, max_n, day, used, at, backlog), limit, nil, over_day, over_minute
end
