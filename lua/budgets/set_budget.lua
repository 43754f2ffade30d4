-- Sets an organization's budget, not below what is reserved and used. Without one before, what is used starts at 0; a change of
-- the period keeps it until the new period turns.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = budget         hash ob:{cell}:<organization>
-- KEYS[3] = events         stream ev:{cell}:<organization>, the organization's own trail
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = max_value      micro-USD
-- ARGV[3] = period         day, month or none
-- ARGV[4] = audit          see include/audit.lua
--
-- Reply:  {'ok', max_value, period, reserved, used, start, resets, noted}  in micro-USD; ms since 1970, resets '' for never; noted as
--                          index_session.lua
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'budget_below_usage', reserved, used}  in micro-USD
-- Writes: HSET budget; XADD events
--@include audit
--@include organization_budget_read
--@include organization_thresholds
--@include write_organization_budget
local organization, budget, events = KEYS[1], KEYS[2], KEYS[3]
local credential, max_value, period, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now
--@block api_key
local b = read_organization_budget(budget, now)
local noted = b.max and noted_of_budget(budget, b) or 0
if not b.max then
  b.used = 0
end
local reserved, used = string.format('%.0f', b.reserved), string.format('%.0f', b.used)
if b.reserved + b.used > tonumber(max_value) then
  return {'budget_below_usage', reserved, used}
end
b.start, b.resets = period_at(period, now)
redis.call('HSET', budget, 'max', max_value, 'period', period)
write_organization_budget(budget, b, events, audit, now)
b.max = max_value + 0
if noted * b.max > (b.reserved + b.used) * 100 then
  noted = math.floor((b.reserved + b.used) * 100 / b.max) -- what is no longer reached is noted anew
end
keep_noted(budget, b, noted)
local fresh = note_budget(events, audit, now, budget, b)
local resets = b.resets and string.format('%.0f', b.resets) or ''
return {'ok', max_value, period, reserved, used, string.format('%.0f', b.start), resets, fresh}
