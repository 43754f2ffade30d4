-- Reads an organization's budget.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = budget         hash ob:{cell}:<organization>
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok', max_value, period, reserved, used, start, resets}  as set_budget.lua
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'no_budget'}
-- Writes: nothing
--@include organization_budget_read
local organization, budget = KEYS[1], KEYS[2]
local credential = ARGV[1]

--@block now
--@block api_key
local b = read_organization_budget(budget, now)
if not b.max then
  return {'no_budget'}
end
local resets = b.resets and string.format('%.0f', b.resets) or ''
local max_value, start = string.format('%.0f', b.max), string.format('%.0f', b.start)
return {'ok', max_value, b.period, string.format('%.0f', b.reserved), string.format('%.0f', b.used), start, resets}
