-- Takes value off the day of an agent on which it was counted. this_day returns the day on which an agent's value counts now, in
-- days since 1970, and how much of its limit is left in micro-USD; nil without a limit for a day. book returns the agent's
-- field restricted with by micro-USD more on this day, or less below 0; the caller knows that they fit, or were counted on it.
local function this_day(restricted, now)
  local max_v, day, left = string.match(restricted or '', '^%a+ (%d+) %d* (%d+) (%S+)')
  if not day then
    return nil
  end
  local today = math.floor(now / 86400000)
  if today > day + 0 then
    return today, max_v + 0
  end
  return day + 0, math.max(left + 0, 0)
end

local function book(restricted, now, by)
  local head, max_v, per_minute, day, left, tat = string.match(restricted, '^(%a+ (%d+) (%d*) (%d+)) (%S+) (.*)')
  --@block turn_day
  left = math.min(left - by, max_v + 0)
  --@block limits_text text=restricted
  return restricted
end
