-- Returns what within_limits (include/agent_limits.lua) does for a lease, and the actions and value that its agent's limits leave
-- it: restricted, nil, nil, n, v; or nil, the limit and when. With partial it is as much of each as fits. While the session observes it
-- is all of both, and the limits that would have refused it follow, false for none.
local function minute_left(restricted, now)
  local max_n, day, tat = string.match(restricted, '^%a+ %d* (%d+) (%d+) %S* (.*)')
  if not max_n then
    return math.huge
  end
  local elapsed, most, backlog = (now - day * 86400000) * max_n, max_n * 60000, 0
  --@block minute_backlog
  return math.floor(math.max(most - backlog, 0) / 60000)
end

-- Returns the refusal of a renewal by this limit: its code, and the limit; unless waiting helps, also what was wanted.
local function agent_refusal(limit, at, wanted_n, wanted_v)
  if limit == 'max_actions_per_minute' and at ~= '' then
    return 'rate_limited ' .. limit
  end
  return 'agent_limit_reached ' .. limit .. ' ' .. wanted_n .. ' ' .. wanted_v
end

local function fit_agent(restricted, now, n, v, partial, observing)
  local day, day_left = this_day(restricted, now)
  local left_n, left_v = minute_left(restricted, now), day and day_left or math.huge
  local fit_n, fit_v = n, v
  if partial then -- of what has no room at all, one is refused
    fit_n, fit_v = math.min(n, math.max(left_n, 1)), math.min(v, math.max(left_v, 1))
  end
  if not observing then
    n, v = fit_n, fit_v
  end
  local restricted_after, limit, at, observed_day, observed_minute = within_limits(restricted, now, n, v, observing)
  return restricted_after, limit, at, n, v, observed_day and fit_v > left_v and observed_day,
    observed_minute and fit_n > left_n and observed_minute
end
