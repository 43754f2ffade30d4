-- Ties an idempotency key to the creation of an agent, and enters the coming agent in its organization's index:
-- claim_key.lua and index_agent.lua in one step. When an earlier request has the key, it writes nothing, because that
-- request may have created its agent already. If it has not, index_agent.lua runs before the next attempt.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = claim          string i:{cell}:<digest>
-- KEYS[3] = agents         zset oa:{cell}:<organization>
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = fingerprint    SHA-256 of the request, 32 bytes
-- ARGV[3] = ttl            ms that the claim is kept
-- ARGV[4] = request_id     of this request
-- ARGV[5] = agent_id       16 bytes, of which the last two are the cell where the outcome will be
-- ARGV[6] = quota          how many of them the organization may have, '' for any number
--
-- Reply:  {'ok', request_id, claimed}  as claim_key.lua
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'key_reused'}  the same key for another request
--         {'over_quota', name, used, quota}
-- Writes: ZADD agents and SET claim, the first time
--@include claims
local organization, claim, agents = KEYS[1], KEYS[2], KEYS[3]
local credential, fingerprint, ttl, request_id, agent_id, quota = unpack(ARGV)

--@block now
--@block api_key
--@block find_claim
--@block refuse_over_quota index=agents
local cell = string.format('%02x%02x', string.byte(agent_id, 15, 16))
redis.call('ZADD', agents, 0, agent_id)
redis.call('SET', claim, claim_of(fingerprint, request_id, cell, organization), 'PX', ttl)
return {'ok', request_id, ''}
