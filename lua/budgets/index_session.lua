-- Enters a coming session in its organization's index, and reserves its value in the organization's budget. The entry is
-- written before the session, so that every session is listed; a reader drops an entry without a session. For the
-- reservation see lua/budgets/README.md.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = open_sessions  zset oo:{cell}:<organization>
-- KEYS[3] = budget         hash ob:{cell}:<organization>
-- KEYS[4] = parts          hash op:{cell}:<organization>
-- KEYS[5] = looks          zset ol:{cell}:<organization>
-- KEYS[6] = events         stream ev:{cell}:<organization>, the organization's own trail
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = session_id     16 bytes
-- ARGV[3] = quota          how many of them the organization may have, '' for any number
-- ARGV[4] = value          micro-USD to reserve, '' for a session with a parent
-- ARGV[5] = agent_id       16 bytes, of the session
-- ARGV[6] = audit          see include/audit.lua
--
-- Arguments: the entry, what to reserve for it in the same step, and the audit.
--
-- Reply:  {'ok', reserved, noted}  reserved when a budget reserved its value, in ms since 1970; '' when none did; noted '1' when the
--                          organization's trail has a threshold more, else ''
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'over_quota', name, used, quota}
--         {'budget_exhausted', remaining, resets}  in micro-USD; ms since 1970, '' for never
-- Writes: ZADD open_sessions; HSET budget; HSET and PEXPIRE parts; ZADD and PEXPIRE looks; XADD
-- events
--@include audit
--@include organization_budget_read
--@include organization_thresholds
--@include write_organization_budget
--@include parts
local organization, open_sessions, budget, parts, looks, events = unpack(KEYS)
local credential, session_id, quota, value, agent_id, audit = unpack(ARGV)

--@block now
--@block api_key
--@block refuse_over_quota index=open_sessions
--@block refuse_beyond_budget
redis.call('ZADD', open_sessions, 0, session_id)
--@block reserve_value
return {'ok', reserved, noted}
