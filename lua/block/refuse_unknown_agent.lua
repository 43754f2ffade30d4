-- Refuses an agent that does not exist or belongs to another organization; the reply is the same.
if agent_organization ~= organization_id then
  return {'unknown_agent'}
end
