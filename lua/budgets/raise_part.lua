-- Raises a child's part to what its limits are to become; never lowers it. So the part is always at least as much as the
-- child's limits. See lua/budgets/README.md.
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
-- Reply:  {'ok', expires_at, observes}
--             until when a child may last, ms since 1970; observes 'o' when a child may
--                                                   observe, else ''
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}    in ms since 1970, '' if it has not happened
--         {'given_up'}                              the child has no part any more
--         {'beyond_parent'}                         the child would last longer than the session
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             as charge_session.lua; limit may also be max_lease_seconds;
--                                                   nothing was changed
-- Writes: HSET session and parts; XADD events
--@include audit
--@include flags
--@include observe
--@include parts
local agent, session, parts, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, child_id, max_actions, max_value, audit, lifetime, max_lease, max_per_action = unpack(ARGV)

--@block now

--@read agent agent_organization agent_revoked
--@block refuse_unknown_agent
--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at refunds holds_due
--@  noted_flags leased_value restrictions delegated_actions delegated_value longest_lease per_action_limit
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
local flags = noted_flags or ''
--@block refuse_inactive
local part = redis.call('HGET', parts, child_id)
local part_n, part_v, since = read_part(part)
if not part_n then
  return {'given_up'}
end
if lifetime ~= '' and now + lifetime > tonumber(expires_at) then
  return {'beyond_parent'}
end
held_value = held_value or '0'
local more_n, more_v = math.max(max_actions - part_n, 0), math.max(max_value - part_v, 0)
local over_n = more_n > 0 and used_actions + more_n > tonumber(actions_limit) and 'max_actions'
local over_v = more_v > 0 and used_value + held_value + more_v > tonumber(value_limit) and name_of_value_limit(refunds, value_limit)
local over, most = over_n or over_v, nil -- most: what the child may not exceed though nothing of it is set aside
if max_lease ~= '' and tonumber(max_lease) > tonumber(longest_lease or 0) then
  most = 'max_lease_seconds'
elseif per_action_limit and max_per_action ~= '' and (max_per_action == '-'
  or tonumber(max_per_action) > tonumber(per_action_limit)) then
  most = 'max_value_usd_per_action'
end
if most or over and not observes(restrictions, used_actions + more_n, used_value + held_value + more_v, actions_limit,
  value_limit) then
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'limit', most or over, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end
local used_n, used_v = used_actions + more_n, used_value + more_v
if more_n + more_v > 0 then
  redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v),
    'dn', string.format('%.0f', (delegated_actions or 0) + more_n), 'dv', string.format('%.0f', (delegated_value or 0) + more_v))
  redis.call('HSET', parts, child_id, part_of(string.sub(part, 1, 16), part_n + more_n, part_v + more_v, since))
  flags = note_usage(session, events, audit, now, flags, used_n, tonumber(actions_limit), used_v + held_value,
    tonumber(value_limit), name_of_value_limit(refunds, value_limit))
end
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_n, over_v)
end
return {'ok', expires_at, is_observing(restrictions) and 'o' or ''}
