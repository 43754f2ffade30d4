-- Revokes a refresh-token family for the agent's organization, and with it the family's access tokens. The index says
-- whether the family is this agent's: the id alone does not, because agents of one cell share a slot. Revoking again
-- changes nothing while the family is marked: the first answer may have been lost.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = family           hash f:{cell}:<family>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = families         zset af:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = revoked_family   'family:' and the 16-byte id of the family to revoke: the field that marks it
-- ARGV[3] = mark_ttl         ms that the mark must outlive, so that no access token of the family outlives it
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
--         {'unknown_agent'}
--         {'unknown_family'}
-- Writes: HSET agent, DEL family, ZREM families and XADD events, once
--@include audit
local agent, family, events, families = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, revoked_family, mark_ttl, audit = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local member = string.sub(revoked_family, 8, 21)

--@block now

local agent_organization, family_revoked = unpack(redis.call('HMGET', agent, 'organization', revoked_family))
--@block refuse_unknown_agent
if family_revoked then
  return {'ok'}
end
if not redis.call('ZSCORE', families, member) then
  return {'unknown_family'}
end

--@block mark_family
record(events, audit, now, 'token.revoked', 'family', string.sub(family, -36))
return {'ok'}
