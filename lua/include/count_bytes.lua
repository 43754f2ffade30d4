-- Adds to the field bytes of an organization's record: what its API keys but the first, its trusted issuers and its webhooks
-- with their deliveries take. A script that writes or removes one calls this after its first write, so the sum is exact, and
-- right also when Redis is full. The estimates for each are within 25 % of Redis's memory.
local function count_bytes(organization, change)
  if change ~= 0 then
    local bytes = (redis.call('HGET', organization, 'bytes') or 0) + change
    redis.call('HSET', organization, 'bytes', string.format('%.0f', math.max(bytes, 0)))
  end
end
