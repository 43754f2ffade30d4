-- Makes a session lease for no longer, and spend no more at once, than one above it. An id without a session is refused from now on,
-- so that a creation on its way creates nothing. Doing it again changes nothing but its count.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = events           stream ev:{cell}:<agent>
-- KEYS[3] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = max_lease        s that a lease of the one above may last
-- ARGV[2] = max_per_action   micro-USD, of the one above; '' for none
-- ARGV[3] = refused_for      ms that a refused id is remembered
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok', lowered}    '1' when it had more until now, else ''
-- Writes: HSET, HDEL and PEXPIRE session; XADD events
--@include audit
--@include budget
--@include restrict
local session, events, agent = KEYS[1], KEYS[2], KEYS[3]
local max_lease, max_per_action, refused_for, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now

--@read session session_agent value_limit held_value expires_at ended_at refunds noted_flags restrictions longest_lease
--@  per_action_limit times_shortened
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
if not session_agent then
  redis.call('HSET', session, 'cl', string.format('%.0f', now))
  redis.call('PEXPIRE', session, refused_for)
  return {'ok', ''}
end
if ended_at or now >= tonumber(expires_at) then
  return {'ok', ''}
end
-- The count refuses a higher limit that was granted before; see change_limits.lua.
redis.call('HSET', session, 'sh', string.format('%.0f', (times_shortened or 0) + 1))
local changed = {}
if tonumber(max_lease) < tonumber(longest_lease or 0) then
  redis.call('HSET', session, 'ml', max_lease)
  changed[#changed + 1] = 'max_lease'
  changed[#changed + 1] = max_lease
end
if max_per_action ~= '' and (not per_action_limit or tonumber(max_per_action) < tonumber(per_action_limit)) then
  redis.call('HSET', session, 'mp', max_per_action, 'w', (string.gsub(noted_flags or '', '[Pd]', '')))
  if not string.find(restrictions or '', 'p', 1, true) then
    restrict(session, restrictions, 'p', held_value, refunds, value_limit)
  end
  changed[#changed + 1] = 'max_per_action'
  changed[#changed + 1] = max_per_action
end
if #changed == 0 then
  return {'ok', ''}
end
if redis.call('EXISTS', agent) == 1 then -- else an audit trail that begins here would never end
  record(events, audit, now, 'session.limits_changed', 'session', string.sub(session, -36), unpack(changed))
end
return {'ok', '1'}
