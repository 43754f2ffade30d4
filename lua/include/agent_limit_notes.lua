-- Notes in the audit trail, once on a UTC day, that an agent has used a limit up or that it has refused something; and
-- which thresholds of its day, 80 and 100 %, are reached. limits_noted is '<day>', a space before each limit and each threshold
-- noted on it, and % behind a threshold. restricted is the agent's field (budgets/include/agent_limits.lua).
local function note_agent_limit(agent, events, audit, now, limit)
  local today = string.format('%d', math.floor(now / 86400000))
  local noted = redis.call('HGET', agent, 'limits_noted') or ''
  if string.sub(noted, 1, #today) ~= today then
    noted = today
  end
  if not string.find(noted, limit, 1, true) then
    redis.call('HSET', agent, 'limits_noted', noted .. ' ' .. limit)
    record(events, audit, now, 'agent.limit_reached', 'limit', limit)
  end
end

local function note_agent_day(agent, events, audit, now, restricted)
  local max_v, left = string.match(restricted, '^%a+ (%d+) %d* %d+ (%S+)')
  if not max_v or left * 5 > max_v + 0 or left + 0 == max_v + 0 then
    return
  end
  local today = string.format('%d', math.floor(now / 86400000))
  local noted = redis.call('HGET', agent, 'limits_noted') or ''
  if string.sub(noted, 1, #today) ~= today then
    noted = today
  end
  for _, percent in ipairs({'80', '100'}) do
    if (max_v - left) * 100 >= max_v * percent and not string.find(noted, ' ' .. percent .. '%', 1, true) then
      noted = noted .. ' ' .. percent .. '%'
      redis.call('HSET', agent, 'limits_noted', noted)
      record(events, audit, now, 'budget.threshold', 'budget', 'agent_day', 'limit', 'max_value_usd_per_day', 'threshold', percent,
        'charged', string.format('%.0f', max_v - left), 'max_value', max_v)
    end
  end
end
