-- Exchanges an agent's secret for a new refresh-token family, at generation 1.
--
-- KEYS[1] = agent        hash a:{cell}:<agent>
-- KEYS[2] = family       hash f:{cell}:<family>
-- KEYS[3] = events       stream ev:{cell}:<agent>
--
-- ARGV[1] = secret_hash  SHA-256 of the secret presented, 32 bytes
-- ARGV[2] = refresh_ttl  ms that a refresh token lives
-- ARGV[3] = scopes       that the family is narrowed to, separated by single spaces; '' for all that the agent has
-- ARGV[4] = audit        see include/audit.lua
--
-- Reply:  {'ok', organization_id, scopes}  organization_id 16 bytes, scopes separated by spaces
--         {'invalid_credentials'}          no such agent, wrong secret or revoked: nothing tells which
--         {'scope_not_held', scope}        the first scope that the agent does not have
-- Writes: HSET and PEXPIRE family; HSET agent at the first use of a secret; HDEL agent of marks that have lapsed;
-- XADD events
--@include audit
local agent, family, events = KEYS[1], KEYS[2], KEYS[3]
local secret_hash, refresh_ttl, scopes, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', agent, 'secret', 'previous_secret', 'previous_until', 'secret_used',
  'revoked', 'organization', 'scopes')
local current = secret_hash == stored[1]
local in_grace = secret_hash == stored[2] and now < tonumber(stored[3] or 0)
if stored[5] or not (current or in_grace) then
  return {'invalid_credentials'}
end
for scope in string.gmatch(scopes, '%S+') do
  if not string.find(' ' .. stored[7] .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end

-- Marks of revoked families outlive their access tokens by design. A few are looked at on each exchange, which keeps
-- their number in proportion to the live ones without ever walking over all of them. An agent has 11 fields of its own.
local looked_at = redis.call('HLEN', agent) > 11 and redis.call('HRANDFIELD', agent, 8) or {}

local fields = {'g', 1, 'r', string.format('%.0f', now)}
if scopes == '' then
  scopes = stored[7]
else
  fields[5], fields[6] = 'sc', scopes
end
redis.call('HSET', family, unpack(fields))
redis.call('PEXPIRE', family, refresh_ttl)
if current and not stored[4] then
  redis.call('HSET', agent, 'secret_used', 1)
end
for _, field in ipairs(looked_at) do
  if string.sub(field, 1, 7) == 'family:' and tonumber(redis.call('HGET', agent, field)) <= now then
    redis.call('HDEL', agent, field)
  end
end
record(events, audit, now, 'token.issued', 'family', string.sub(family, -36))
return {'ok', stored[6], scopes}
