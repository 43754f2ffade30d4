-- Returns the earlier request that claimed the idempotency key, or refuses a key that a different request has claimed.
-- Takes claim, fingerprint. Sets first, stored.
local stored = redis.call('GET', claim)
local first = stored and claimant(stored, fingerprint)
if first then
  return {'ok', first, '1'}
end
if stored then
  return {'key_reused'}
end
