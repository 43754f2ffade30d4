-- Reads an organization's budget, a hash with max in micro-USD, period, start of the current one in ms since 1970, used in it, and
-- reserved by root sessions that are not closed. Without a budget it has neither max nor period. When a period turns, what
-- is used restarts at 0, and ended has the period before. A clock that goes back turns nothing.
local day = 86400000

-- Returns the first ms of the month of a time.
local function month_of(at)
  local days = math.floor(at / day)
  local z = days + 719468 -- days since 1 March of year 0; the algorithm is Howard Hinnant's civil_from_days
  local of_era = z % 146097
  local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) - math.floor(of_era / 146096)) / 365)
  local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * of_year + 2) / 153)
  return (days - (of_year - math.floor((153 * month + 2) / 5))) * day
end

-- Returns when the period of this name began, and when the next one begins, nothing for none.
local function period_at(period, at)
  if period == 'day' then
    local start = at - at % day
    return start, start + day
  elseif period == 'month' then
    local start = month_of(at)
    return start, month_of(start + 32 * day)
  end
  return 0, nil
end

-- Returns the budget, with nil for the max of none; resets is nil for a period that does not end.
local function read_organization_budget(budget, at)
  --@read budget max period start used reserved
  local b = {max = tonumber(max), period = period, used = tonumber(used or 0), reserved = tonumber(reserved or 0)}
  b.start, b.resets = period_at(period, at)
  local before = tonumber(start or 0)
  if b.start > before then
    b.ended = {start = before, used = b.used}
    b.used = 0
  elseif b.start < before then
    b.start, b.resets = period_at(period, before)
  end
  return b
end

-- Returns a budget as replies have it: what remains, and when it resets, '' for never.
local function remaining_of(b)
  return string.format('%.0f', b.max - b.used - b.reserved), b.resets and string.format('%.0f', b.resets) or ''
end
