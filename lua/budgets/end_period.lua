-- Records that the period of an organization's budget is over, if it is, and enters the end of the current one among what is due
-- (records/include/due.lua). Doing it again changes nothing.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = budget         hash ob:{cell}:<organization>
-- KEYS[3] = due            zset odu:{cell}:<organization>
-- KEYS[4] = events         stream ev:{cell}:<organization>, the organization's own trail
--
-- ARGV[1] = audit          see include/audit.lua
--
-- Reply:  {'ok', resets, noted}  when the current period ends, in ms since 1970, '' for never; noted as index_session.lua
-- Writes: HSET budget; ZADD and ZREM due; XADD events
--@include audit
--@include organization_budget_read
--@include write_organization_budget
local organization, budget, due, events = unpack(KEYS)
local audit = ARGV[1]

--@block now
local b = read_organization_budget(budget, now)
if not b.max or not b.resets or redis.call('EXISTS', organization) == 0 then
  redis.call('ZREM', due, 'b')
  return {'ok', '', ''}
end
local noted = ''
if b.ended then
  write_organization_budget(budget, b, events, audit, now)
  noted = b.ended.used > 0 and '1' or ''
end
local resets = string.format('%.0f', b.resets)
redis.call('ZADD', due, resets, 'b')
return {'ok', resets, noted}
