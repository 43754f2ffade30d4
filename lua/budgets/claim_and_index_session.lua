-- Ties an idempotency key to the creation of a session, enters the coming session in its organization's index, and reserves its
-- value: claim_key.lua and index_session.lua in one step. When an earlier request has the key, it writes nothing, because that
-- request may have created its session already. If it has not, index_session.lua runs before the next attempt.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = claim          string i:{cell}:<digest>
-- KEYS[3] = open_sessions  zset oo:{cell}:<organization>
-- KEYS[4] = budget         hash ob:{cell}:<organization>
-- KEYS[5] = parts          hash op:{cell}:<organization>
-- KEYS[6] = looks          zset ol:{cell}:<organization>
-- KEYS[7] = events         stream ev:{cell}:<organization>, the organization's own trail
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = fingerprint    SHA-256 of the request, 32 bytes
-- ARGV[3] = ttl            ms that the claim is kept
-- ARGV[4] = request_id     of this request
-- ARGV[5] = session_id     16 bytes
-- ARGV[6] = quota          how many of them the organization may have, '' for any number
-- ARGV[7] = value          micro-USD to reserve, '' for a session with a parent
-- ARGV[8] = agent_id       16 bytes, of the session
-- ARGV[9] = audit          see include/audit.lua
-- ARGV[10] = outcome_id    16 bytes, of which the last two are the cell where the outcome will be
--
-- Arguments: those of claim_key.lua and index_session.lua.
--
-- Reply:  {'ok', request_id, claimed}  as claim_key.lua, of an earlier request
--         {'ok', request_id, claimed, reserved, noted}  as claim_key.lua, the first time; reserved and noted as index_session.lua
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'key_reused'}  the same key for another request
--         {'over_quota', name, used, quota}
--         {'budget_exhausted', remaining, resets}  in micro-USD; ms since 1970, '' for never
-- Writes: ZADD open_sessions, SET claim, HSET budget, HSET and PEXPIRE parts, ZADD and PEXPIRE looks, XADD events, the first time
--@include claims
--@include audit
--@include organization_budget_read
--@include organization_thresholds
--@include write_organization_budget
--@include parts
local organization, claim, open_sessions, budget, parts, looks, events = unpack(KEYS)
local credential, fingerprint, ttl, request_id, session_id, quota = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local value, agent_id, audit, outcome_id = ARGV[7], ARGV[8], ARGV[9], ARGV[10]

--@block now
--@block api_key
--@block find_claim
--@block refuse_over_quota index=open_sessions
--@block refuse_beyond_budget
local cell = string.format('%02x%02x', string.byte(outcome_id, 15, 16))
redis.call('ZADD', open_sessions, 0, session_id)
redis.call('SET', claim, claim_of(fingerprint, request_id, cell, organization), 'PX', ttl)
--@block reserve_value
return {'ok', request_id, '', reserved, noted}
