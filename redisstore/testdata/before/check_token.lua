-- Checks whether an access token's agent and family are live.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the token
-- ARGV[2] = token_family     'family:' and the 16-byte family id of the token
--
-- Reply:  {'ok'}
--         {'invalid_token'}
-- Writes: nothing
local agent = KEYS[1]
local organization_id, token_family = ARGV[1], ARGV[2]

local agent_fields = redis.call('HMGET', agent, 'organization', 'revoked', token_family)
local agent_organization, agent_revoked, family_revoked = agent_fields[1], agent_fields[2], agent_fields[3]
if agent_organization ~= organization_id or agent_revoked or family_revoked then
  return {'invalid_token'}
end
return {'ok'}
