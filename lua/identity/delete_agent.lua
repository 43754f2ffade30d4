-- Revokes an agent unless it is revoked, and lets its record expire. Agents are never created twice, so once
-- the record is gone every script finds no such agent. The audit trail ends after the record, so that no event can
-- begin another trail. Deleting again changes nothing and returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = kept             ms that the record stays readable
-- ARGV[3] = audit            see include/audit.lua
--
-- Reply:  {'ok', revoked}  revoked in ms since 1970
--         {'unknown_agent'}
-- Writes: HSET agent and XADD events, unless it is revoked; PEXPIRE agent and events, the first time
--@include audit
local agent, events = KEYS[1], KEYS[2]
local organization_id, kept, audit = ARGV[1], ARGV[2], ARGV[3]

--@block now

--@read agent agent_organization agent_revoked
--@block refuse_unknown_agent
local revoked = agent_revoked or string.format('%d', now)
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
if not agent_revoked then
  redis.call('HSET', agent, 'revoked', revoked)
  record(events, audit, now, 'agent.revoked')
end
if redis.call('PTTL', agent) < 0 then
  redis.call('PEXPIRE', agent, kept)
  redis.call('PEXPIRE', events, kept)
end
return {'ok', revoked}
