-- Checks whether a secret is that of a live agent.
--
-- KEYS[1] = agent        hash a:{cell}:<agent>
--
-- ARGV[1] = secret_hash  SHA-256 of the secret presented, 32 bytes
-- ARGV[2] = note         '1' to note that the secret is in use, '' when Redis refuses every write
--
-- Reply:  {'ok', organization_id}  16 bytes
--         {'invalid_credentials'}  no such agent, wrong secret or revoked; the reply does not say which
-- Writes: HSET agent at the first use of a secret; sent again it changes nothing
local agent = KEYS[1]
local secret_hash, note = ARGV[1], ARGV[2]

--@block now

--@read agent agent_secret previous_secret previous_until agent_revoked agent_organization secret_used
--@block refuse_secret

if current and not secret_used and note ~= '' then
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', agent, 'secret_used', 1)
end
return {'ok', agent_organization}
