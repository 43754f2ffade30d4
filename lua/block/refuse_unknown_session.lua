-- Refuses a session that does not exist or belongs to another agent; the reply is the same.
if a ~= agent_id then
  return {'unknown_session'}
end
