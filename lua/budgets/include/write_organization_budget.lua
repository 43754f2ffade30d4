-- Writes what changes in an organization's budget; see include/organization_budget_read.lua.
-- The first that finds a period over in which something was used tells that in the organization's trail.
local function write_organization_budget(budget, b, events, audit, now)
  redis.call('HSET', budget, 'start', string.format('%.0f', b.start), 'used', string.format('%.0f', b.used),
    'reserved', string.format('%.0f', b.reserved))
  if b.ended and b.ended.used > 0 and b.max then
    record(events, by_time(audit), now, 'budget.period_ended', 'budget', 'organization', 'started', string.format('%.0f', b.ended.start),
      'charged', string.format('%.0f', b.ended.used), 'max_value', string.format('%.0f', b.max))
  end
end
