-- Creates an agent.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = name
-- ARGV[3] = scopes           separated by single spaces, '' for none
-- ARGV[4] = description      '' for none
-- ARGV[5] = metadata         JSON object, '' for none
-- ARGV[6] = secret_hash      SHA-256 of the agent secret, 32 bytes
-- ARGV[7] = audit            see include/audit.lua
--
-- Reply:  {'ok', created, id}  created in ms since 1970, id as text
-- Writes: HSET agent, XADD events
--@include audit
local agent, events = KEYS[1], KEYS[2]
local organization_id, name, scopes, description, metadata, secret_hash, audit = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local created = string.format('%.0f', now)

local fields = {
  'organization', organization_id, 'name', name, 'scopes', scopes, 'secret', secret_hash, 'created', created,
}
if description ~= '' then
  fields[#fields + 1] = 'description'
  fields[#fields + 1] = description
end
if metadata ~= '' then
  fields[#fields + 1] = 'metadata'
  fields[#fields + 1] = metadata
end
redis.call('HSET', agent, unpack(fields))
record(events, audit, now, 'agent.created')
return {'ok', created, string.sub(agent, -36)}
