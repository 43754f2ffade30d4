-- Raises a child's part to what its limits are to become; never lowers it. So the part is always at least as much as the
-- child's limits. See docs/budgets.md.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = parts            hash sp:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = child_id         16 bytes
-- ARGV[4] = max_actions      that the child's part is to have at least
-- ARGV[5] = max_value        micro-USD that it is to have at least
-- ARGV[6] = audit            see include/audit.lua
-- ARGV[7] = lifetime         ms from now that the child is to last, '' to leave it
-- ARGV[8] = max_lease        s that a lease of the child is to last at most, '' to leave it
-- ARGV[9] = max_per_action   micro-USD that it is to have, '-' for none, '' to leave it
--
-- Arguments: two name the session, six the child and what it is to have; each is compared with a limit of its own.
--
-- Reply:  {'ok', x, observes}                       until when a child may last, ms since 1970; observes 'o' when a child may
--                                                   observe, else ''
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}    in ms since 1970, '' if it has not happened
--         {'given_up'}                              the child has no part any more
--         {'beyond_parent'}                         the child would last longer than the session
--         {'limit', limit, n, ma, v, mv, h, x, gb}  as charge_session.lua; limit may also be max_lease_seconds;
--                                                   nothing was changed
-- Writes: HSET session and parts; XADD events
--@include audit
--@include flags
--@include observe
--@include parts
local agent, session, parts, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, child_id, max_actions, max_value, audit, lifetime, max_lease, max_per_action = unpack(ARGV)

--@block now

local agent_organization, agent_revoked = unpack(redis.call('HMGET', agent, 'organization', 'revoked'))
--@block refuse_unknown_agent
local a, n, ma, v, mv, h, x, e, gb, hx, w, lv, r, dn, dv, ml, mp = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'gb', 'hx', 'w', 'lv', 'r', 'dn', 'dv', 'ml', 'mp'))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
local flags = w or ''
--@block refuse_inactive
local part = redis.call('HGET', parts, child_id)
local part_n, part_v = read_part(part)
if not part_n then
  return {'given_up'}
end
if lifetime ~= '' and now + lifetime > tonumber(x) then
  return {'beyond_parent'}
end
h = h or '0'
local more_n, more_v = math.max(max_actions - part_n, 0), math.max(max_value - part_v, 0)
local over_n = more_n > 0 and n + more_n > tonumber(ma) and 'max_actions'
local over_v = more_v > 0 and v + h + more_v > tonumber(mv) and value_limit(gb, mv)
local over, most = over_n or over_v, nil -- most: what the child may not exceed though nothing of it is set aside
if max_lease ~= '' and tonumber(max_lease) > tonumber(ml or 0) then
  most = 'max_lease_seconds'
elseif mp and max_per_action ~= '' and (max_per_action == '-' or tonumber(max_per_action) > tonumber(mp)) then
  most = 'max_value_usd_per_action'
end
if most or over and not observes(r, n + more_n, v + h + more_v, ma, mv) then
  --@block show_leased v=v h=h lv=lv
  --@block show_delegated n=n v=v gb=gb r=r
  return {'limit', most or over, n, ma, v, mv, h, x, gb}
end
local used_n, used_v = n + more_n, v + more_v
if more_n + more_v > 0 then
  redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v),
    'dn', string.format('%.0f', (dn or 0) + more_n), 'dv', string.format('%.0f', (dv or 0) + more_v))
  redis.call('HSET', parts, child_id, part_of(string.sub(part, 1, 16), part_n + more_n, part_v + more_v))
  flags = note_usage(session, events, audit, now, flags, used_n, tonumber(ma), used_v + h, tonumber(mv), value_limit(gb, mv))
end
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_n, over_v)
end
return {'ok', x, is_observing(r) and 'o' or ''}
