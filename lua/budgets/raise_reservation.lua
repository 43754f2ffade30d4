-- Raises what a root session has reserved in its organization's budget to what its max_value is to become; never lowers it. A
-- session without a reservation gets one if there is a budget, unless it is over. See lua/budgets/README.md.
--
-- KEYS[1] = budget         hash ob:{cell}:<organization>
-- KEYS[2] = parts          hash op:{cell}:<organization>
-- KEYS[3] = looks          zset ol:{cell}:<organization>
-- KEYS[4] = closed_sessions  zset os:{cell}:<organization>
-- KEYS[5] = events         stream ev:{cell}:<organization>, the organization's own trail
--
-- ARGV[1] = session_id     16 bytes
-- ARGV[2] = agent_id       16 bytes, of the session
-- ARGV[3] = max_value      micro-USD
-- ARGV[4] = audit          see include/audit.lua
--
-- Reply:  {'ok', reserved, noted}  reserved '1' when a budget keeps its value, else ''; noted as index_session.lua
--         {'budget_exhausted', remaining, resets}  in micro-USD; ms since 1970, '' for never
-- Writes: HSET budget; HSET and PEXPIRE parts; ZADD and PEXPIRE looks; XADD events
--@include audit
--@include organization_budget_read
--@include organization_thresholds
--@include write_organization_budget
--@include parts
local budget, parts, looks, closed_sessions, events = unpack(KEYS)
local session_id, agent_id, max_value, audit = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

--@block now

local b, part = read_organization_budget(budget, now), redis.call('HGET', parts, session_id)
local part_n, part_v, since = read_part(part)
if not part_v and (part or not b.max or redis.call('ZSCORE', closed_sessions, session_id)) then
  return {'ok', '', ''}
end
local more = math.max(max_value - (part_v or 0), 0)
if b.max and more > 0 and b.used + b.reserved + more > b.max then
  local remaining, resets = remaining_of(b)
  return {'budget_exhausted', remaining, resets}
end
local noted = ''
if more > 0 or not part_v then
  b.reserved = b.reserved + more
  write_organization_budget(budget, b, events, audit, now)
  noted = note_budget(events, audit, now, budget, b)
  redis.call('HSET', parts, session_id, part_of(agent_id, 0, (part_v or 0) + more, since or now))
end
if not part_v then
  redis.call('ZADD', looks, string.format('%.0f', now), session_id)
  redis.call('PEXPIRE', parts, as_long_as_parts)
  redis.call('PEXPIRE', looks, as_long_as_parts)
end
return {'ok', '1', noted}
