-- Refuses what may not be done in a suspended session. See budgets/include/restrict.lua.
-- Takes session.
if $restrictions and string.find($restrictions, 's', 1, true) then
  return {'session_suspended', redis.call('HGET', session, 'su')}
end
