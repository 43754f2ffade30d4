-- Returns what within_limits (include/agent_limits.lua) does for a lease, and the actions and value that its agent's limits leave
-- it: restricted, nil, nil, n, v; or nil, the limit and when. With partial it is as much of each as fits.
local function minute_left(restricted, now)
  local max_n, at, backlog = string.match(restricted, '^%a+ %d* (%d+) %d+ %d+ (%d+) (%d+)$')
  if not max_n then
    return math.huge
  end
  if at - now > 60000 then
    return max_n + 0
  end
  backlog = math.max(backlog - math.max(now - at, 0) * max_n, 0)
  return math.floor(math.max(max_n * 60000 - backlog, 0) / 60000)
end

-- Returns the refusal of a renewal by this limit: its code, and the limit.
local function agent_refusal(limit, at)
  if limit == 'max_actions_per_minute' and at ~= '' then
    return 'rate_limited ' .. limit
  end
  return 'agent_limit_reached ' .. limit
end

local function fit_agent(restricted, now, n, v, partial)
  local day, day_left = this_day(restricted, now)
  local left_n, left_v = minute_left(restricted, now), day and day_left or math.huge
  if partial then -- of what has no room at all, one is refused
    n, v = math.min(n, math.max(left_n, 1)), math.min(v, math.max(left_v, 1))
  end
  local counted, limit, at = within_limits(restricted, now, n, v)
  return counted, limit, at, n, v
end
