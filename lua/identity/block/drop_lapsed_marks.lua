-- Drops marks of revoked families that have lapsed. They outlive their access tokens by design. Each token that is issued looks at a
-- few, which keeps their number in proportion to the live ones without ever walking over all of them. Few agents have more than
-- 15 fields of their own.
-- Takes agent, now. Sets looked_at.
local looked_at = redis.call('HLEN', agent) > 15 and redis.call('HRANDFIELD', agent, 8) or {}
for _, field in ipairs(looked_at) do
  if (string.sub(field, 1, 7) == 'family:' or string.sub(field, 1, 6) == 'bound:') and tonumber(redis.call('HGET', agent, field)) <= now then
    redis.call('HDEL', agent, field)
  end
end
