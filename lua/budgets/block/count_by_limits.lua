-- Counts actions, count of them with the value, by the limits of their agent, whose field restricted is $restricted: sets
-- restricted_after, agent_limit, at, observed_day and observed_minute to what within_limits returns (include/agent_limits.lua), and
-- crossed when a day that was less than 80 % used is used by as much after it. They are nil before.
-- Takes agent_limit, at, count, crossed, now, observed_day, observed_minute, observing, restricted_after, value. Sets agent_limit,
-- at, crossed, head, left, observed_day, observed_minute, per_day, per_minute, restricted_after, tat.
local head, per_day, per_minute, day, left, tat = string.match($restricted, '^(%a+ (%d*) (%d*) (%d+)) (%S*) (.*)')
if head then
  --@block turn_day
  if left ~= '' and value > 0 then
    local before = left * 5
    left = left - value
    crossed = left * 5 <= per_day + 0 and before > per_day + 0
    if left <= 0 then
      agent_limit, observed_day = 'max_value_usd_per_day', left < 0 and 'max_value_usd_per_day' or nil
      left = math.max(left, -8000000000000000) -- a double counts what is used exactly
    end
  end
  local room
  if tat ~= '' and count > 0 then
    local rate, backlog = per_minute + 0, 0
    local elapsed, most = (now - starts) * rate, rate * 60000
    --@block minute_backlog
    backlog = backlog + count * 60000
    if backlog > most then
      observed_minute, room = 'max_actions_per_minute', count <= rate and (backlog - most) / rate
      backlog = most
    end
    tat = elapsed + backlog
  end
  if observing or not (observed_day or observed_minute) then
    --@block limits_text text=restricted_after
  elseif observed_day then
    observed_day, observed_minute, at = nil, nil, string.format('%d', starts + 86400000)
  else
    agent_limit, observed_minute, at = observed_minute, nil, room and string.format('%d', math.ceil(room)) or ''
  end
end
