-- Removes an organization's budget. What sessions have reserved stays noted, so that a later budget counts it.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = budget         hash ob:{cell}:<organization>
--
-- ARGV[1] = credential     the API key presented and the role it needs, see block/api_key.lua
--
-- Reply:  {'ok'}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'no_budget'}
-- Writes: HDEL budget
local organization, budget = KEYS[1], KEYS[2]
local credential = ARGV[1]

--@block now
--@block api_key
if not redis.call('HGET', budget, 'max') then
  return {'no_budget'}
end
redis.call('HDEL', budget, 'max', 'period', 'start', 'used', 'noted')
return {'ok'}
