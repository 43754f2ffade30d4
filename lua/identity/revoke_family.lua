-- Revokes a refresh-token family of the calling agent, and with it the family's access tokens. A family may revoke
-- itself again: the first answer may have been lost.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = family           hash f:{cell}:<family>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = families         zset af:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller's access token
-- ARGV[2] = caller_family    'family:' or 'bound:', and the 16-byte family id of the caller's access token
-- ARGV[3] = revoked_family   'family:' and the 16-byte id of the family to revoke: the field that marks it
-- ARGV[4] = mark_ttl         ms that the mark must outlive, so that no access token of the family outlives it
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
--         {'invalid_token'}  the caller's access token is not live
-- Writes: HSET agent, DEL family, ZREM families, XADD events the first time
--@include audit
local agent, family, events, families = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, caller_family, revoked_family = ARGV[1], ARGV[2], ARGV[3]
local mark_ttl, audit = tonumber(ARGV[4]), ARGV[5]

--@block now

--@read agent agent_organization agent_revoked caller_revoked=caller_family family_revoked=revoked_family agent_restricted
local by_another = caller_revoked and string.sub(caller_family, -16) ~= string.sub(revoked_family, -16)
if agent_organization ~= organization_id or agent_revoked or by_another then
  return {'invalid_token'}
end
--@block refuse_unbound family=caller_family
--@block refuse_session_key family=caller_family session=agent

local member = string.sub(revoked_family, 8, 21)
--@block mark_family
if not family_revoked then
  record(events, audit, now, 'token.revoked', 'family', string.sub(family, -36))
end
return {'ok'}
