-- Does nothing while holds of the session are due: release_holds.lua goes first.
if $hx and now >= tonumber($hx) then
  return {'holds_due'}
end
