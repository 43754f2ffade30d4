-- Refuses an access token that is bound to no key, of an agent whose tokens must be bound (RFC 9449): its family comes as
-- 'family:<id>', that of a bound token as 'bound:<id>'. A revoked family is marked under both names (block/mark_family.lua).
if agent_restricted and string.byte($family) == 102 and string.find(agent_restricted, 'p', 1, true) then -- 102 is f
  return {'invalid_token'}
end
