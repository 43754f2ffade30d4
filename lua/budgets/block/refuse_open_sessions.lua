-- Refuses a session of an agent that has max_open_sessions open.
-- Takes agent, agent_open, audit, events, max_open_sessions, now.
if max_open_sessions then
  local open = redis.call('ZCOUNT', agent_open, string.format('(%d', now), '+inf')
  if open >= max_open_sessions + 0 then
    note_agent_limit(agent, events, audit, now, 'max_open_sessions')
    return {'agent_limit', 'max_open_sessions', ''}
  end
end
