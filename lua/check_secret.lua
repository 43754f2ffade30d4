-- Says whether a secret is that of a live agent.
-- Lua interns strings, so == compares two pointers: its time tells nothing of the hashes.
--
-- KEYS[1] = agent        hash a:{cell}:<agent>
--
-- ARGV[1] = secret_hash  SHA-256 of the secret presented, 32 bytes
-- ARGV[2] = note         '1' to note that the secret is in use, '' when Redis refuses every write
--
-- Reply:  {'ok', organization_id}  16 bytes
--         {'invalid_credentials'}  no such agent, wrong secret or revoked: nothing tells which
-- Writes: HSET agent at the first use of a secret; sent again it changes nothing
local agent = KEYS[1]
local secret_hash, note = ARGV[1], ARGV[2]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', agent, 'secret', 'previous_secret', 'previous_until', 'revoked', 'organization',
  'secret_used')
local current = secret_hash == stored[1]
local in_grace = secret_hash == stored[2] and now < tonumber(stored[3] or 0)
if stored[4] or not (current or in_grace) then
  return {'invalid_credentials'}
end

if current and not stored[6] and note ~= '' then
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', agent, 'secret_used', 1)
end
return {'ok', stored[5]}
