-- Refuses a root session whose value does not fit into its organization's budget; value is '' for a session that takes none
-- of it. b is the budget when the value is to be reserved.
-- Takes budget, now, parts, session_id, value. Sets b.
local b = value ~= '' and read_organization_budget(budget, now) or nil
if b and (not b.max or redis.call('HEXISTS', parts, session_id) == 1) then
  b = nil
end
if b and b.used + b.reserved + value > b.max then
  local remaining, resets = remaining_of(b)
  return {'budget_exhausted', remaining, resets}
end
