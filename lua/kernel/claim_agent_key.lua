-- Authorizes an agent's batch and ties its idempotency key to it, before the batch is split: the outcomes of its parts are
-- stored apart (idempotent.lua).
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>; of a session key
-- KEYS[3] = claim            string i:{cell}:<digest>
--
-- ARGV[1] = organization_id  16 bytes, of the access token
-- ARGV[2] = token_family     'family:' and the 16-byte family id of the access token
-- ARGV[3] = fingerprint      SHA-256 of the request, 32 bytes
-- ARGV[4] = ttl              ms that the claim is kept
-- ARGV[5] = request_id       of this request
--
-- Reply:  {'ok', request_id, claimed}  as claim_key.lua
--         {'invalid_token'}  the access token's agent or family is revoked
--         {'agent_suspended', since}  in ms since 1970; unless an earlier request claimed the key
--         {'key_reused'}     the same key for another request
-- Writes: SET claim, the first time
--@include outcomes
local agent, session, claim = KEYS[1], KEYS[2], KEYS[3]
local organization_id, token_family, fingerprint, ttl, request_id = unpack(ARGV)

--@block live_token session=session

local stored = redis.call('GET', claim)
if stored then
  --@block same_request size=2
  return {'ok', decode(stored, 1)[2], '1'}
end
--@block refuse_suspended
redis.call('SET', claim, encode({fingerprint, request_id}), 'PX', ttl)
return {'ok', request_id, ''}
