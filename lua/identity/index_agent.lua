-- Enters a coming agent in its organization's index. The entry is written before the agent, so that every agent is
-- listed; a reader drops an entry without an agent.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = agents        zset oa:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = agent_id      16 bytes
-- ARGV[3] = quota         how many of them the organization may have, '' for any number
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'over_quota', name, used, quota}
-- Writes: ZADD agents
local organization, agents = KEYS[1], KEYS[2]
local credential, agent_id, quota = ARGV[1], ARGV[2], ARGV[3]

--@block now
--@block api_key
--@block refuse_over_quota index=agents
redis.call('ZADD', agents, 0, agent_id)
return {'ok'}
