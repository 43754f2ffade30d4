-- Refuses a session that does not exist or belongs to another agent; the reply is the same.
-- Takes agent_id, session_agent.
if session_agent ~= agent_id then
  return {'unknown_session'}
end
