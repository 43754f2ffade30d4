-- Makes a session enforce its limits because one above it does. An id without a session is refused from now on, so that a creation
-- on its way creates nothing. Doing it again changes nothing but its count.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = events           stream ev:{cell}:<agent>
-- KEYS[3] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = refused_for      ms that a refused id is remembered
-- ARGV[2] = audit            see include/audit.lua
--
-- Reply:  {'ok', enforced}  '1' when it observed until now, else ''
-- Writes: HSET and PEXPIRE session; XADD events
--@include audit
local session, events, agent = KEYS[1], KEYS[2], KEYS[3]
local refused_for, audit = ARGV[1], ARGV[2]

--@block now

--@read session session_agent expires_at ended_at restrictions times_shortened
if not session_agent then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'cl', string.format('%.0f', now))
  redis.call('PEXPIRE', session, refused_for)
  return {'ok', ''}
end
if ended_at or now >= tonumber(expires_at) then
  return {'ok', ''}
end
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
-- The count refuses to let it observe if that was granted before; see change_limits.lua.
redis.call('HSET', session, 'sh', string.format('%.0f', (times_shortened or 0) + 1))
if not string.find(restrictions or '', 'o', 1, true) then
  return {'ok', ''}
end
redis.call('HSET', session, 'r', (string.gsub(restrictions, 'o', 'O')))
if redis.call('EXISTS', agent) == 1 then -- else an audit trail that begins here would never end
  record(events, audit, now, 'session.limits_changed', 'session', string.sub(session, -36), 'enforcement', 'enforce')
end
return {'ok', '1'}
