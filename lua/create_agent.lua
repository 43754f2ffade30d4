-- Creates an agent.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes
-- ARGV[2] = name
-- ARGV[3] = scopes           separated by single spaces, '' for none
-- ARGV[4] = description      '' for none
-- ARGV[5] = metadata         JSON object, '' for none
-- ARGV[6] = secret_hash      SHA-256 of the agent secret, 32 bytes
--
-- Reply:  {'ok', created}  created in ms since 1970
-- Writes: HSET agent
local agent = KEYS[1]
local organization_id, name, scopes, description, metadata, secret_hash = unpack(ARGV)

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local fields = {
  'organization', organization_id, 'name', name, 'scopes', scopes, 'secret', secret_hash, 'created', now,
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
return {'ok', now}
