-- Releases the claim on an idempotency key whose request had no outcome: the client may correct the request and send it with
-- the same key. The claim of another request stays.
--
-- KEYS[1] = claim        string i:{cell}:<digest>
--
-- ARGV[1] = fingerprint  SHA-256 of the request, 32 bytes
--
-- Reply:  {'ok'}
-- Writes: DEL claim
--@include claims
local claim, fingerprint = KEYS[1], ARGV[1]

local stored = redis.call('GET', claim)
if stored and claimant(stored, fingerprint) then
  redis.call('DEL', claim)
end
return {'ok'}
