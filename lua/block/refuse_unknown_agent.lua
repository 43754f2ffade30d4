-- Refuses an agent that does not exist or belongs to another organization; the reply is the same.
-- Takes agent_organization, organization_id.
if agent_organization ~= organization_id then
  return {'unknown_agent'}
end
