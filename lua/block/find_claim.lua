-- Returns the request that claimed the idempotency key before, or refuses a key that another request has.
local stored = redis.call('GET', claim)
local first = stored and claimant(stored, fingerprint)
if first then
  return {'ok', first, '1'}
end
if stored then
  return {'key_reused'}
end
