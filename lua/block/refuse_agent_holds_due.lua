-- Does nothing while holds are due that count in the agent's day, of whichever session: Go releases them first.
-- Takes agent, agent_restricted, now.
if agent_restricted and string.find(agent_restricted, '^%a+ %d') and now >= (redis.call('HGET', agent, 'hold_due') or now + 1) + 0 then
  return {'agent_holds_due'}
end
