-- Releases the claim on an idempotency key, when nothing came of the request that made it: the client may correct the
-- request and send it with the same key. The claim of another request stays.
--
-- KEYS[1] = claim        string i:{cell}:<digest>
--
-- ARGV[1] = fingerprint  SHA-256 of what was asked, 32 bytes
--
-- Reply:  {'ok'}
-- Writes: DEL claim
local claim, fingerprint = KEYS[1], ARGV[1]

local claimed = redis.call('GET', claim)
if claimed and string.sub(claimed, 1, 32) == fingerprint then
  redis.call('DEL', claim)
end
return {'ok'}
