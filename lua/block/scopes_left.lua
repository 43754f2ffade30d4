-- Reads what scopes an agent has left whose scopes were narrowed, '=' before them; nil while its tokens and sessions can hold
-- no others than it has.
local scopes_left
if agent_restricted and string.find(agent_restricted, 'n', 1, true) then
  scopes_left = '=' .. redis.call('HGET', agent, 'scopes')
end
