-- Writes into an agent's index until when a family may live: up to an eighth of refresh_ttl later than it ends. So a
-- refresh moves the entry only when such a period has begun since the last one.
local function index_family(families, member, epoch, now, refresh_ttl)
  local period = refresh_ttl / 8
  local ends = (math.floor(now / period) + 1) * period + refresh_ttl
  redis.call('ZADD', families, family_score(epoch, ends), member)
  redis.call('PEXPIRE', families, string.format('%d', refresh_ttl + 2 * period))
end
