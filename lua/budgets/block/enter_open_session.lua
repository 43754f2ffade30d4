-- Counts a created session among the open ones of an agent that has max_open_sessions, while ttl and kept are those of block/extend_ttl.lua.
-- Takes agent_open, created, expires, kept, max_open_sessions, session, ttl.
if max_open_sessions then
  -- Two that have expired make room for each that is entered.
  for _, expired in ipairs(redis.call('ZRANGEBYSCORE', agent_open, '-inf', created, 'LIMIT', 0, 2)) do
    redis.call('ZREM', agent_open, expired)
  end
  redis.call('ZADD', agent_open, expires, string.sub(session, -36))
  --@block extend_ttl key=agent_open
end
