-- Does nothing while holds of the session are due: release_holds.lua goes first.
-- Takes now.
if $due and now >= tonumber($due) then
  return {'holds_due'}
end
