-- Notes a coming agent in its organization's index. The index is written before the object, so that no agent can exist
-- that its organization does not list; an entry without an object is dropped by the reader that meets it.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = agents        zset oa:{cell}:<organization>
--
-- ARGV[1] = key_hash      SHA-256 of the API key presented, 32 bytes
-- ARGV[2] = agent_id      16 bytes
-- ARGV[3] = quota         how many of them the organization may have, '' for any number
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'over_quota', name, used, quota}
-- Writes: ZADD agents
local organization, agents = KEYS[1], KEYS[2]
local key_hash, agent_id, quota = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HMGET', organization, 'key', 'previous_key', 'previous_until')
local in_grace = key_hash == stored[2] and now < tonumber(stored[3] or 0)
if key_hash ~= stored[1] and not in_grace then
  return {'invalid_api_key'}
end

local used = quota ~= '' and redis.call('ZCARD', agents) or 0
if quota ~= '' and used >= tonumber(quota) then
  return {'over_quota', 'agents', string.format('%.0f', used), quota}
end
redis.call('ZADD', agents, 0, agent_id)
return {'ok'}
