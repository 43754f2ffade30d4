-- Replaces what a root session has reserved by what it has used: the current period of its organization's budget counts that.
-- The session is closed, so that is final. Once: taking again changes nothing. See lua/budgets/README.md.
--
-- KEYS[1] = budget         hash ob:{cell}:<organization>
-- KEYS[2] = parts          hash op:{cell}:<organization>
-- KEYS[3] = events         stream ev:{cell}:<organization>, the organization's own trail
--
-- ARGV[1] = session_id     16 bytes
-- ARGV[2] = used_v         micro-USD
-- ARGV[3] = audit          see include/audit.lua
--
-- Reply:  {'ok', noted}     as index_session.lua
-- Writes: HSET budget and parts; XADD events
--@include audit
--@include organization_budget_read
--@include organization_thresholds
--@include write_organization_budget
--@include parts
local budget, parts, events = KEYS[1], KEYS[2], KEYS[3]
local session_id, used_v, audit = ARGV[1], ARGV[2], ARGV[3]

--@block now

local part = redis.call('HGET', parts, session_id)
local part_n, part_v = read_part(part)
if not part_v then
  return {'ok', ''}
end
local b = read_organization_budget(budget, now)
redis.call('HDEL', parts, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', parts, session_id, string.sub(part, 1, 16) .. 'taken')
b.reserved, b.used = math.max(b.reserved - part_v, 0), b.used + used_v
write_organization_budget(budget, b, events, audit, now)
return {'ok', note_budget(events, audit, now, budget, b)}
