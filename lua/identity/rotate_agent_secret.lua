-- Replaces an agent's secret, or gives one to an agent without. The one before stays valid for the grace time. A secret that was never used is replaced
-- instead: the answer that carried it may have been lost, and the agents still hold the older one.
--
-- With revoke the agent enters another epoch: a family of an earlier one cannot be refreshed, an access token without a refresh token is
-- refused (block/refuse_unbound.lua), and the access tokens of families stop once end_families.lua has marked each.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = new_secret_hash  SHA-256 of the new secret, 32 bytes
-- ARGV[3] = grace            ms for which the secret in use stays valid
-- ARGV[4] = audit            see include/audit.lua
-- ARGV[5] = revoke           '1' to revoke all tokens that were issued to the agent before, else ''
--
-- Reply:  {'ok', previous_until}  ms since 1970 at which the secret in use ends; now if there is none
--         {'unknown_agent'}
--         {'agent_revoked'}
-- Writes: HSET and HDEL agent, XADD events
--@include audit
--@include restrict_agent
local agent, events = KEYS[1], KEYS[2]
local organization_id, new_secret_hash, grace, audit, revoke = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

--@block now

local agent_organization, agent_revoked, agent_secret, secret_used, previous_secret, old_previous_until, agent_epoch, agent_restricted =
  unpack(redis.call('HMGET', agent, 'organization', 'revoked', 'secret', 'secret_used', 'previous_secret', 'previous_until', 'epoch', 'restricted'))
--@block refuse_unknown_agent
if agent_revoked then
  return {'agent_revoked'}
end

local in_use = agent_secret
local previous_lives = previous_secret and now < tonumber(old_previous_until)
if previous_lives and not secret_used then
  in_use = previous_secret
end
local previous_until = string.format('%d', in_use and now + grace or now)
redis.call('HDEL', agent, 'secret_used', 'no_secret') -- goes on when Redis is full, see lua.go
redis.call('HSET', agent, 'secret', new_secret_hash)
if in_use then
  redis.call('HSET', agent, 'previous_secret', in_use, 'previous_until', previous_until)
end
record(events, audit, now, 'agent.secret_rotated', 'previous_until', previous_until)
if revoke ~= '' then
  redis.call('HSET', agent, 'epoch', string.format('%d', (agent_epoch or 0) + 1))
  if not string.find(agent_restricted or '', 'e', 1, true) then
    restrict_tokens(agent, agent_restricted, 'e')
  end
  record(events, audit, now, 'agent.families_revoked')
end
return {'ok', previous_until}
