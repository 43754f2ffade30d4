-- Ends a session because one above it was ended: as end_session.lua, but the caller is authorized for that one. An id without a
-- session is refused from now on, so that a creation on its way creates nothing. Ending again changes nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = holds            zset sh:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
-- KEYS[5] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = refused_for      ms that a refused id is remembered
-- ARGV[2] = audit            see include/audit.lua
--
-- Reply:  {'ok', ended}    '1' when this ended it, else ''
--         {'holds_due'}    nothing was done: release_holds.lua goes first
-- Writes: HSET, HDEL and PEXPIRE session; XADD events, one for each of the first 100 transactions; UNLINK holds; HSET
-- agent; ZREM agent_open
--@include audit
--@include agent_day
local agent, session, holds, events, agent_open = unpack(KEYS)
local refused_for, audit = ARGV[1], ARGV[2]

--@block now

--@read agent agent_organization agent_revoked agent_restricted
--@read session session_agent expires_at ended_at held_value holds_due leased_value refunds day_holds
if not session_agent then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'cl', string.format('%.0f', now))
  redis.call('PEXPIRE', session, refused_for)
  return {'ok', ''}
end
if ended_at or agent_revoked or not agent_organization then
  return {'ok', ''}
end
--@block refuse_holds_due due=holds_due
if now >= tonumber(expires_at) then
  return {'ok', ''}
end
local ended = string.format('%.0f', now)
--@block write_end
return {'ok', '1'}
