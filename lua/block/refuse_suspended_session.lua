-- Refuses what may not be done in a suspended session. $r are its flags; see budgets/include/restrict.lua.
if $r and string.find($r, 's', 1, true) then
  return {'session_suspended', redis.call('HGET', session, 'su')}
end
