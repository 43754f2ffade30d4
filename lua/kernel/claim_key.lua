-- Authorizes an organization's request and ties its idempotency key to it, where the organization's requests on all agents
-- meet. The outcome is stored with the change, in the agent's cell (idempotent.lua).
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = claim         string i:{cell}:<digest>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = fingerprint   SHA-256 of the request, 32 bytes
-- ARGV[3] = ttl           ms that the claim is kept
-- ARGV[4] = request_id    of this request
-- ARGV[5] = cell          where the outcome will be, 4 hexadecimal digits; '' for several
--
-- Reply:  {'ok', request_id, claimed}  of the request that claimed the key first; claimed '1' if that was one before, or ''
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'key_reused'}  the same key for another request
-- Writes: SET claim, the first time
--@include claims
local organization, claim = KEYS[1], KEYS[2]
local credential, fingerprint, ttl, request_id, cell = unpack(ARGV)

--@block now
--@block api_key
--@block find_claim
redis.call('SET', claim, claim_of(fingerprint, request_id, cell, organization), 'PX', ttl)
return {'ok', request_id, ''}
