-- Changes the limits of an active session, never below what is used and held. The audit trail notes again when a new
-- limit is nearly or wholly used.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>
-- KEYS[3] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[4] = session_transactions  zset stx:{cell}:<session>
-- KEYS[5] = events                stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id       16 bytes, of the calling organization
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = max_actions           '' to leave it; '+' and what to add to it
-- ARGV[4] = max_value             micro-USD, '' to leave it; '+' and what to add to it
-- ARGV[5] = lifetime              ms from now, '' to leave it
-- ARGV[6] = retention             ms that the session stays readable after its lifetime
-- ARGV[7] = audit                 see include/audit.lua
-- ARGV[8] = most_actions          that max_actions may become
-- ARGV[9] = most_value            micro-USD that max_value may become
-- ARGV[10] = max_lease            s that a lease may last, '0' for no leases, '' to leave it
-- ARGV[11] = granted              for a session whose books another keeps: '<actions> <micro-USD> <ms since 1970> <times shortened>',
--                                 the highest limits and expiry that the one above grants; '' for none
--
-- Arguments: each limit may be left, set or added to by itself; what they may become at most is known to Go alone.
--
-- Reply:  {'ok', now, revoked, scopes, session}  as get_session.lua, after the change
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'below_usage', limit, n, ma, v, mv, h, x, gb}  limit is max_actions or max_value_usd, the rest as it is
--         {'stale'}        the limits would exceed what is granted, or nothing is: it must be granted again
--         {'beyond_parent'}  it would last longer than is granted
--         {'above_bounds', limit}  limit is max_actions or max_value_usd, which would become more than it may
-- Writes: HSET, HDEL and PEXPIRE session; PEXPIRE agent_sessions and session_transactions; XADD events
--@include audit
--@include budget
--@include flags
--@include parts
--@include restrict
local agent, session, agent_sessions, session_transactions, events = unpack(KEYS)
local organization_id, agent_id, max_actions, max_value, lifetime, retention = unpack(ARGV)
local audit, most_actions, most_value, max_lease, granted = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]

--@block now

local agent_organization, agent_revoked, agent_scopes = unpack(redis.call('HMGET', agent, 'organization', 'revoked', 'scopes'))
--@block refuse_unknown_agent
local a, n, ma, v, mv, h, x, e, gb, hx, w, lv, r, sh = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'gb', 'hx', 'w', 'lv', 'r', 'sh'))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
local flags = w or ''
--@block refuse_inactive
h = h or '0'
local given_back, max_committed, old_max_value = read_budget(gb, mv)
if string.sub(max_actions, 1, 1) == '+' then
  max_actions = string.format('%d', ma + string.sub(max_actions, 2))
end
if string.sub(max_value, 1, 1) == '+' then
  max_value = string.format('%d', old_max_value + string.sub(max_value, 2))
end
if max_actions ~= '' and tonumber(max_actions) > tonumber(most_actions) then
  return {'above_bounds', 'max_actions'}
end
if max_value ~= '' and tonumber(max_value) > tonumber(most_value) then
  return {'above_bounds', 'max_value_usd'}
end
if max_actions ~= '' and tonumber(max_actions) < tonumber(n) then
  --@block show_leased v=v h=h lv=lv
  --@block show_delegated n=n v=v gb=gb r=r
  return {'below_usage', 'max_actions', n, ma, v, mv, h, x, gb}
end
if max_value ~= '' and tonumber(max_value) < v + h then
  --@block show_leased v=v h=h lv=lv
  --@block show_delegated n=n v=v gb=gb r=r
  return {'below_usage', 'max_value_usd', n, ma, v, mv, h, x, gb}
end

local kept_above = r and string.find(r, 'k', 1, true)
if kept_above then -- see docs/budgets.md
  local granted_n, granted_v, granted_x, shortened = string.match(granted, '^(%d+) (%d+) (%d+) (%d+)$')
  local over = max_actions ~= '' and tonumber(max_actions) > tonumber(granted_n or ma)
  over = over or max_value ~= '' and tonumber(max_value) > tonumber(granted_v or old_max_value)
  over = over or lifetime ~= '' and shortened and shortened ~= (sh or '0')
  if over then
    return {'stale'}
  end
  if lifetime ~= '' and now + lifetime > tonumber(granted_x or x) then
    return {'beyond_parent'}
  end
elseif granted ~= '' then
  r = restrict(session, r, 'k', h, gb, mv)
  redis.call('PEXPIRE', session, as_long_as_parts)
  gb = redis.call('HGET', session, 'gb')
  given_back, max_committed, old_max_value = read_budget(gb, mv)
end
local changed = {}
if max_actions ~= '' then
  ma, flags = max_actions, string.gsub(flags, '[nN]', '')
  changed[#changed + 1] = 'max_actions'
  changed[#changed + 1] = max_actions
end
if max_value ~= '' then
  flags = string.gsub(flags, '[vV]', '')
  if max_committed then
    gb, mv = write_budget(given_back, max_committed, max_value)
    redis.call('HSET', session, 'gb', gb)
  else
    mv = max_value
  end
  changed[#changed + 1] = 'max_value'
  changed[#changed + 1] = max_value
end
if lifetime ~= '' then
  x = string.format('%d', now + lifetime)
  changed[#changed + 1] = 'expires'
  changed[#changed + 1] = x
  local kept = lifetime + retention
  local ttl = string.format('%d', kept)
  -- Never sooner than before: transactions may hold longer than the session lasts.
  --@block extend_ttl key=session
  --@block extend_ttl key=agent_sessions
  --@block extend_ttl key=session_transactions
end
if max_lease ~= '' then
  redis.call('HSET', session, 'ml', max_lease)
  changed[#changed + 1] = 'max_lease'
  changed[#changed + 1] = max_lease
end
redis.call('HSET', session, 'ma', ma, 'mv', mv, 'x', x, 'w', flags)
record(events, audit, now, 'session.limits_changed', 'session', string.sub(session, -36), unpack(changed))
note_usage(session, events, audit, now, flags, tonumber(n), tonumber(ma), v + h, tonumber(mv), value_limit(gb, mv))
--@block session_state
return {'ok', string.format('%d', now), agent_revoked or '', agent_scopes, state}
