-- Creates an agent.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
-- KEYS[3] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = name
-- ARGV[3] = scopes           separated by single spaces, '' for none
-- ARGV[4] = description      '' for none
-- ARGV[5] = metadata         JSON object, '' for none
-- ARGV[6] = secret_hash      SHA-256 of the agent secret, 32 bytes; '' for an agent without one
-- ARGV[7] = audit            see include/audit.lua
-- ARGV[8] = limits           as wanted in include/set_agent_limits.lua, '' for none
-- ARGV[9] = audiences        separated by single spaces, '-' for none, '' for any
-- ARGV[10] = jwks            JSON Web Key Set, '' for none
-- ARGV[11] = jwks_uri        '' for none
-- ARGV[12] = restricted      the flag p of include/restrict_agent.lua, '' without it
--
-- Arguments: each is stored as a field of its own, or names its creator; packed into one they would have to be split here.
--
-- Reply:  {'ok', created, id}  created in ms since 1970, id as text
-- Writes: HSET and HDEL agent, UNLINK agent_open, XADD events
--@include audit
--@include set_agent_limits
local agent, events, agent_open = KEYS[1], KEYS[2], KEYS[3]
local organization_id, name, scopes, description, metadata, secret_hash, audit, limits, audiences, jwks, jwks_uri, restricted = unpack(ARGV)

--@block now
local created = string.format('%d', now)

local fields = {
  'organization', organization_id, 'name', name, 'scopes', scopes, 'created', created,
}
local no_secret = secret_hash == '' and '1' or ''
--@block optional_field field=secret value=secret_hash
--@block optional_field field=no_secret value=no_secret
--@block optional_field field=description value=description
--@block optional_field field=metadata value=metadata
--@block optional_field field=audiences value=audiences
--@block optional_field field=jwks value=jwks
--@block optional_field field=jwks_uri value=jwks_uri
--@block optional_field field=restricted value=restricted
redis.call('HSET', agent, unpack(fields))
if limits ~= '' then
  limits = set_agent_limits(agent, agent_open, now, limits)
  record(events, audit, now, 'agent.created', 'limits', limits)
else
  record(events, audit, now, 'agent.created')
end
return {'ok', created, string.sub(agent, -36)}
