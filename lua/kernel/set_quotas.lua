-- Sets quotas of an organization, or resets them to their defaults.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = usage         hash oq:{cell}:<organization>
--
-- ARGV[1] = quotas        '<name> <value>' in lines; the value '-' stands for the default
--
-- Reply:  {'ok'}
--         {'unknown_organization'}
-- Writes: HSET and HDEL usage
local organization, usage = KEYS[1], KEYS[2]
local quotas = ARGV[1]

if redis.call('EXISTS', organization) == 0 then
  return {'unknown_organization'}
end
redis.call('HDEL', usage, '') -- goes on when Redis is full, see lua.go
for name, value in string.gmatch(quotas, '([%w_]+) (%S+)\n') do
  if value == '-' then
    redis.call('HDEL', usage, 'q:' .. name)
  else
    redis.call('HSET', usage, 'q:' .. name, value)
  end
end
return {'ok'}
