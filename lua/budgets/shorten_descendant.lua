-- Makes a session expire no later than one above it. An id without a session is refused from now on, so that a creation on its way
-- creates nothing. Doing it again changes nothing but its count.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = expires          ms since 1970, of the one above
-- ARGV[2] = refused_for      ms that a refused id is remembered
--
-- Reply:  {'ok'}
-- Writes: HSET and PEXPIRE session; ZADD agent_open
local session, agent_open = KEYS[1], KEYS[2]
local expires, refused_for = ARGV[1], ARGV[2]

--@block now

--@read session session_agent expires_at ended_at times_shortened
if not session_agent then
  redis.call('HSET', session, 'cl', string.format('%.0f', now))
  redis.call('PEXPIRE', session, refused_for)
  return {'ok'}
end
if ended_at or now >= tonumber(expires_at) then
  return {'ok'}
end
-- The count refuses a longer lifetime that was granted before; see change_limits.lua.
redis.call('HSET', session, 'sh', string.format('%.0f', (times_shortened or 0) + 1))
if tonumber(expires) < tonumber(expires_at) then
  redis.call('HSET', session, 'x', expires)
  redis.call('ZADD', agent_open, 'XX', expires, string.sub(session, -36))
end
return {'ok'}
