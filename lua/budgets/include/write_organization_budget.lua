-- Writes what changes in an organization's budget; see include/organization_budget_read.lua.
local function write_organization_budget(budget, b)
  redis.call('HSET', budget, 'start', string.format('%.0f', b.start), 'used', string.format('%.0f', b.used),
    'reserved', string.format('%.0f', b.reserved))
end
