-- Refuses to issue a token that is bound to no key, of an agent whose tokens must be bound (RFC 9449).
-- Takes agent_restricted, key.
if key == '' and agent_restricted and string.find(agent_restricted, 'p', 1, true) then
  return {'proof_required'}
end
