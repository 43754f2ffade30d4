-- Notes in the audit trail, once on a UTC day, that an agent has used a limit up or that it has refused something.
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
