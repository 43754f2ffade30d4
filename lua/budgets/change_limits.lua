-- Changes the limits of an active session, never to less than what is used and held, and whether it enforces them. A session
-- that observes may have used more than a limit: it takes any limits, and afterwards they may still be raised. The audit trail
-- notes again when a new limit is nearly or wholly used, or would refuse.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>
-- KEYS[3] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[4] = session_transactions  zset stx:{cell}:<session>
-- KEYS[5] = events                stream ev:{cell}:<agent>
-- KEYS[6] = requests              hash rq:{cell}:<session>
-- KEYS[7] = agent_open            zset ao:{cell}:<agent>
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
-- ARGV[11] = enforcement          'enforce' or 'observe', '' to leave it
-- ARGV[12] = max_per_action       micro-USD, '-' for none, '' to leave it
-- ARGV[13] = granted for a session whose usage another takes: '<actions> <micro-USD> <ms since 1970> <times narrowed>',
--                                 the highest limits and expiry that the one above grants, with max_lease and max_per_action as
--                                 they
--                                 are here, and o behind it when that observes; '' for none;
--                                 '-' to get stale instead of a change that nothing else refuses
-- ARGV[14] = thresholds           '=' and percents, ascending, with single spaces between; '-' for 80 and 100, '' to leave them
--
-- Arguments: each limit may be left, set or added to by itself; what they may become at most is known to Go alone.
--
-- Reply:  {'ok', now, revoked, scopes, session}  as get_session.lua, after the change
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'below_usage', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             limit is max_actions or max_value_usd, the rest as it is
--         {'stale'}        the limits would exceed what is granted, or nothing is: it must be granted again
--         {'beyond_parent'}  it would last longer than is granted
--         {'above_bounds', limit}  limit is max_actions or max_value_usd, which would become more than it may
--         {'parent_enforces'}      so the session cannot begin to observe
-- Writes: HSET, HDEL and PEXPIRE session; PEXPIRE agent_sessions, session_transactions and requests; ZADD and PEXPIRE
-- agent_open; XADD events
--@include audit
--@include budget
--@include flags
--@include parts
--@include restrict
local agent, session, agent_sessions, session_transactions, events, requests, agent_open = unpack(KEYS)
local organization_id, agent_id, max_actions, max_value, lifetime, retention = unpack(ARGV)
local audit, most_actions, most_value, max_lease, enforcement, max_per_action = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]
local granted, thresholds = ARGV[13], ARGV[14]

--@block now

--@read agent agent_organization agent_revoked agent_scopes agent_restricted
--@block refuse_unknown_agent
--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at refunds holds_due
--@  noted_flags leased_value restrictions observed_refusals parent times_shortened longest_lease per_action_limit
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
local flags = noted_flags or ''
--@block refuse_inactive
held_value = held_value or '0'
--@block new_limits
local observed = restrictions and string.find(restrictions, 'o', 1, true)
if enforcement == 'observe' and parent and not observed then
  local narrowed, above = string.match(granted, ' (%d+)(o?)$')
  if above ~= 'o' then
    return {'parent_enforces'}
  elseif narrowed ~= (times_shortened or '0') then
    return {'stale'} -- the one above may enforce meanwhile
  end
end
local enforces = not observed and enforcement ~= 'observe'
if enforces and max_actions ~= '' and tonumber(max_actions) < math.min(tonumber(used_actions), tonumber(actions_limit)) then
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'below_usage', 'max_actions', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end
if enforces and max_value ~= '' and tonumber(max_value) < math.min(used_value + held_value, tonumber(old_max_value)) then
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'below_usage', 'max_value_usd', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end
local raises = max_lease ~= '' and tonumber(max_lease) > tonumber(longest_lease or 0)
if per_action_limit and max_per_action ~= '' then
  raises = raises or max_per_action == '-' or tonumber(max_per_action) > tonumber(per_action_limit)
end
if parent and raises and string.match(granted, ' (%d+)o?$') ~= (times_shortened or '0') then
  return {'stale'} -- the one above may have less meanwhile
end
--@block within_grant
local changed = {}
--@block write_limits
if lifetime ~= '' then
  expires_at = string.format('%d', now + lifetime)
  changed[#changed + 1] = 'expires'
  changed[#changed + 1] = expires_at
  local kept = lifetime + retention
  local ttl = string.format('%d', kept)
  -- Never sooner than before: transactions may hold longer than the session lasts.
  --@block extend_ttl key=session
  --@block extend_ttl key=agent_sessions
  --@block extend_ttl key=session_transactions
  --@block extend_ttl key=requests
  if agent_restricted and string.find(agent_restricted, 'o', 1, true) then
    redis.call('ZADD', agent_open, 'XX', expires_at, string.sub(session, -36))
    --@block extend_ttl key=agent_open
  end
end
if max_per_action ~= '' then
  flags = string.gsub(flags, '[Pd]', '')
  local restricted = restrictions and string.find(restrictions, 'p', 1, true)
  if max_per_action == '-' then
    redis.call('HDEL', session, 'mp')
    changed[#changed + 1] = 'limit'
    changed[#changed + 1] = 'max_value_usd_per_action'
  else
    redis.call('HSET', session, 'mp', max_per_action)
    changed[#changed + 1] = 'max_per_action'
    changed[#changed + 1] = max_per_action
  end
  if max_per_action ~= '-' and not restricted then
    restrictions = restrict(session, restrictions, 'p', held_value, refunds, value_limit)
  elseif max_per_action == '-' and restricted then
    restrictions = unrestrict(session, restrictions, 'p', holds_due, refunds)
  end
end
if thresholds ~= '' then
  flags = string.gsub(flags, 'T[%d ]*%.', '')
  if restrictions and string.find(restrictions, 't', 1, true) then
    restrictions = unrestrict(session, restrictions, 't%d+,%d+%.', holds_due, refunds)
    refunds = redis.call('HGET', session, 'gb') or nil
  end
  if thresholds ~= '-' then
    flags = flags .. 'T' .. string.sub(thresholds, 2) .. '.'
    if tonumber(string.match(thresholds, '%d+') or 80) < 80 then
      restrictions = restrict(session, restrictions, 't0,0.', held_value, refunds, value_limit)
      refunds = redis.call('HGET', session, 'gb')
    end
  end
  changed[#changed + 1] = 'thresholds'
  changed[#changed + 1] = thresholds == '-' and '80 100' or string.sub(thresholds, 2)
end
if max_lease ~= '' then
  redis.call('HSET', session, 'ml', max_lease)
  changed[#changed + 1] = 'max_lease'
  changed[#changed + 1] = max_lease
end
if enforcement ~= '' then
  changed[#changed + 1] = 'enforcement'
  changed[#changed + 1] = enforcement
end
if enforcement == 'observe' and not observed then
  restrict(session, (string.gsub(restrictions or '', 'O', '')), 'o', held_value, refunds, value_limit)
  redis.call('HSET', session, 'oc', observed_refusals or '0')
  flags = string.gsub(flags, '[abcdef]', '')
elseif enforcement == 'enforce' and observed then
  redis.call('HSET', session, 'r', (string.gsub(restrictions, 'o', 'O')))
end
redis.call('HSET', session, 'ma', actions_limit, 'mv', value_limit, 'x', expires_at, 'w', flags)
watch_thresholds(session, flags)
record(events, audit, now, 'session.limits_changed', 'session', string.sub(session, -36), unpack(changed))
note_usage(session, events, audit, now, flags, tonumber(used_actions), tonumber(actions_limit), used_value + held_value,
  tonumber(value_limit), name_of_value_limit(refunds, value_limit))
--@block session_state
return {'ok', string.format('%d', now), agent_revoked or '', agent_scopes, state}
