-- Makes a session follow the suspension of its parent, or its end. Each change of the parent has a version; a session follows the
-- latest that reached it, so changes that overlap end alike everywhere. An id without a session is refused from now on, so that a
-- creation on its way creates nothing: the session would not know which changes are older than what it missed. A session that is
-- over follows too, without an event: its descendants may live on, when its end broke off midway.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = events           stream ev:{cell}:<agent>
-- KEYS[3] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = suspended        '1' when the parent is suspended, by itself or from above; else ''
-- ARGV[2] = version          of that
-- ARGV[3] = reason           '' for none
-- ARGV[4] = refused_for      ms that a refused id is remembered
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', exists, after, suspension_version}
--             exists '1' when its children are to follow; after '1' when it is suspended, and the version
--                          of that
-- Writes: HSET, HDEL and PEXPIRE session; XADD events
--@include audit
--@include budget
--@include one_line
--@include restrict
local session, events, agent = KEYS[1], KEYS[2], KEYS[3]
local suspended, version, reason, refused_for, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

--@block now

--@read session session_agent value_limit held_value expires_at ended_at refunds holds_due restrictions suspension_version
--@  suspended_above suspended_itself parent_version
if not session_agent then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'cl', string.format('%d', now))
  redis.call('PEXPIRE', session, refused_for)
  return {'ok', '', '', '0'}
end
local was = string.find(restrictions or '', 's', 1, true)
if tonumber(version) <= tonumber(parent_version or -1) then
  -- A later change was here first, and may not have reached its children yet: they follow what it is now.
  return {'ok', '1', was and '1' or '', suspension_version or '0'}
end
local over = ended_at or now >= tonumber(expires_at)
suspension_version = string.format('%d', math.max((suspension_version or 0) + 1,
  now)) -- a time exceeds versions that Redis has lost
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', session, 'pv', version, 'sv', suspension_version)
local after = (suspended ~= '' or suspended_itself or (was and not suspended_above)) and '1' or ''
if suspended ~= '' then
  redis.call('HSET', session, 'sa', '1')
  if was and not suspended_above then
    redis.call('HSET', session, 'so', '1')
  end
else
  redis.call('HDEL', session, 'sa', 'so')
end
local trail = not over and redis.call('EXISTS', agent) == 1 -- else one that begins here would never end
if after ~= '' and not was then
  restrict(session, restrictions, 's', held_value, refunds, value_limit)
  redis.call('HSET', session, 'su', string.format('%d', now))
  if reason ~= '' then
    redis.call('HSET', session, 'sr', one_line(reason))
  end
  if trail then
    record(events, audit, now, 'session.suspended', 'session', string.sub(session, -36), 'reason', reason)
  end
elseif after == '' and was then
  redis.call('HDEL', session, 'su', 'sr')
  unrestrict(session, restrictions, 's', holds_due, refunds)
  if trail then
    record(events, audit, now, 'session.resumed', 'session', string.sub(session, -36), 'reason', reason)
  end
end
return {'ok', '1', after, suspension_version}
