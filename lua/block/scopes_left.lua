-- Sets scopes_left to the scopes that an agent with restrictions has left whose scopes were narrowed, '=' before them; it stays nil
-- while the agent's tokens and sessions can hold no others than it has.
-- Takes agent, agent_restricted, scopes_left. Sets scopes_left.
if string.find(agent_restricted, 'n', 1, true) then
  scopes_left = '=' .. redis.call('HGET', agent, 'scopes')
end
