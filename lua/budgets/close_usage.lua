-- Closes a session whose usage another takes, so that its usage is final; or says that it may still change. An id
-- without a session is refused from now on, so that a creation on its way creates nothing. Closing again changes nothing and
-- returns the same. See lua/budgets/README.md.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = holds            zset sh:{cell}:<session>
-- KEYS[4] = leases           zset sl:{cell}:<session>
-- KEYS[5] = looks            zset sc:{cell}:<session>, of its own children
-- KEYS[6] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = refused_for      ms that a refused id is remembered; '' to refuse none: a session that does not exist is open
-- ARGV[2] = audit            see include/audit.lua
--
-- Reply:  {'ok', state, used_actions, used_value, total_overage, given_back, parent, parent_agent}
--             state open, closed, refused, unkept, or why it is over while children are not
--                          settled: ended, expired or revoked. unkept is over, and has no parent that takes its usage: the top-up that
--                          reserved for it was broken off. What it has used; its parent as text and the parent's agent (16
--                          bytes), '' for none
--         {'holds_due'}    nothing was done: release_holds.lua goes first
-- Writes: HSET and PEXPIRE session; XADD events
--@include audit
--@include budget
--@include flags
--@include settles_late
local agent, session, holds, leases, looks, events = unpack(KEYS)
local refused_for, audit = ARGV[1], ARGV[2]

--@block now

--@read agent agent_organization agent_revoked
--@read session session_agent used_actions used_value expires_at ended_at holds_due noted_flags closed_at total_overage refunds
--@  value_limit parent parent_agent restrictions unsettled_at
if not session_agent and refused_for == '' then
  return {'ok', 'open', '0', '0', '0', '0', '', ''}
elseif not session_agent then
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', session, 'cl', string.format('%.0f', now))
  redis.call('PEXPIRE', session, refused_for)
  return {'ok', 'refused', '0', '0', '0', '0', '', ''}
end
local given_back = read_budget(refunds, value_limit)
total_overage, parent, parent_agent = total_overage or '0', parent or '', parent_agent or ''
if closed_at then
  return {'ok', 'closed', used_actions, used_value, total_overage, given_back, parent, parent_agent}
end
if agent_organization then -- else nothing can settle its holds any more
  --@block refuse_holds_due due=holds_due
end
local over = ended_at or agent_revoked or not agent_organization or now >= tonumber(expires_at)
local waiting = redis.call('EXISTS', looks) == 1
if over and not waiting and not string.find(restrictions or '', 'k', 1, true) then
  return {'ok', 'unkept', '0', '0', '0', '0', '', ''}
end
local settled = not waiting
if agent_organization and (redis.call('ZCARD', holds) + redis.call('ZCARD', leases) > 0
  or now < (unsettled_at or 0) + settles_late) then
  settled = false
end
if not (over and settled) then
  local state = 'open'
  if over and waiting then
    local ended = ended_at and tonumber(ended_at) < tonumber(expires_at)
    state = ended and 'ended' or now >= tonumber(expires_at) and 'expired' or 'revoked'
  end
  return {'ok', state, used_actions, used_value, total_overage, given_back, parent, parent_agent}
end
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
if not ended_at and not agent_revoked and agent_organization then
  note_expired(session, events, audit, now, noted_flags or '')
  -- An end that is not before the expiry stands for an expiry. It lasts when Redis's clock goes back.
  redis.call('HSET', session, 'e', string.format('%.0f', math.max(now, tonumber(expires_at))))
end
redis.call('HSET', session, 'cl', string.format('%.0f', now))
return {'ok', 'closed', used_actions, used_value, total_overage, given_back, parent, parent_agent}
