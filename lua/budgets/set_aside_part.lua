-- Sets a part of a session's limits aside for a child that does not exist yet, or changes nothing. Once for an id: see
-- lua/budgets/README.md. A session that observes sets it aside beyond its limits too, and counts that.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = parts            hash sp:{cell}:<session>
-- KEYS[4] = looks            zset sc:{cell}:<session>
-- KEYS[5] = closed           zset sd:{cell}:<session>
-- KEYS[6] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = child_id         16 bytes
-- ARGV[5] = child_agent      16 bytes
-- ARGV[6] = max_actions      of the child; '~' and a number for at most as many, if the session has that many left
-- ARGV[7] = max_value        micro-USD; '~' and a number for at most as much
-- ARGV[8] = lifetime         ms; the child expires with the session if that is earlier
-- ARGV[9] = scopes           that the session must hold, separated by single spaces
-- ARGV[10] = audit           see include/audit.lua
-- ARGV[11] = enforcement     of the child, as create_session.lua; only where the session observes may it observe
-- ARGV[12] = max_lease       s that a lease of the child may last, '' for no leases
--
-- Arguments: three name the caller, two the child, six what it asks for; each is compared with a limit of its own.
--
-- Reply:  {'ok', child_id, expires, depth, scopes, set_aside, bounded, per_action_limit, suspension_version, actions, value}
--             times in ms since 1970; depth 2 for the child of a
--                                                   root; scopes that the session holds; bounded '1' when it has
--                                                   max_committed; per_action_limit its max_value_usd_per_action in micro-USD, ''
--                                                   for none;
--                                                   suspension_version the version of its suspension; actions and value the
--                                                   limits of the child
--         {'unknown_agent'}
--         {'invalid_token'}                         the access token's agent or family is revoked
--         {'agent_suspended', since}                in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}    in ms since 1970, '' if it has not happened
--         {'session_suspended', since}              in ms since 1970
--         {'scope_not_held', scope}                 the session does not hold it; sessions:delegate, which an agent needs
--         {'parent_enforces'}                       the child is to observe, and the session enforces
--         {'given_up'}                              this id was set aside before
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             as charge_session.lua; limit may also be max_depth, max_open_children or max_lease_seconds; nothing was set aside
-- Writes: HSET, HDEL and PEXPIRE session; HSET and PEXPIRE parts; ZADD and PEXPIRE looks; XADD events
--@include audit
--@include budget
--@include flags
--@include observe
--@include parts
--@include restrict
--@include still_held

-- Returns a limit of the child: what was asked for; or of a default, '~' and a number, what is left if that is less. Of nothing that is
-- left it is 1, which does not fit: only a session that observes gives it all the same.
local function fit_default(limit, left, restrictions)
  local most = string.match(limit, '^~(%d+)$')
  if not most then
    return tonumber(limit)
  elseif most == '0' or left <= 0 and is_observing(restrictions) then
    return tonumber(most)
  end
  return math.max(math.min(most, left), 1)
end

local agent, session, parts, looks, closed, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local organization_id, agent_id, caller_family, child_id, child_agent = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max_actions, max_value, lifetime, scopes = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9]
local audit, enforcement, max_lease = ARGV[10], ARGV[11], ARGV[12]

--@block now
--@block either_caller_with_both session=agent
--@block refuse_suspended

--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at refunds holds_due
--@  noted_flags leased_value restrictions own_scopes tree_depth delegated_actions delegated_value per_action_limit
--@  suspension_version longest_lease
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
local flags = noted_flags or ''
--@block refuse_inactive
--@block refuse_suspended_session restrictions=restrictions
local held_scopes = own_scopes or agent_scopes
if string.find(agent_restricted or '', 'n', 1, true) then
  held_scopes = still_held(held_scopes, agent_scopes) -- what the agent has lost is not its to give
end
if caller_family ~= '' then
  local scope = 'sessions:delegate'
  --@block hold_scope held=agent_scopes
  --@block hold_scope held=held_scopes
end
--@block hold_scopes held=held_scopes
if enforcement ~= '' and not is_observing(restrictions) then
  return {'parent_enforces'}
end
if redis.call('HEXISTS', parts, child_id) == 1 or redis.call('ZSCORE', closed, child_id) then
  return {'given_up'}
end

local depth, limit = (tree_depth or 1) + 1, nil
held_value = held_value or '0'
local given_back, max_committed, own_max_value = read_budget(refunds, value_limit)
max_actions = fit_default(max_actions, actions_limit - used_actions, restrictions)
if own_max_value + 0 == 0 and string.sub(max_value, 1, 1) == '~' then
  max_value = '0' -- a session without value has children without
end
max_value = fit_default(max_value, value_limit - used_value - held_value, restrictions)
if depth > 8 then
  limit = 'max_depth'
elseif redis.call('ZCARD', looks) >= 1000 then
  limit = 'max_open_children'
elseif max_lease ~= '' and tonumber(max_lease) > tonumber(longest_lease or 0) then
  limit = 'max_lease_seconds'
end
local over_n = used_actions + max_actions > tonumber(actions_limit) and 'max_actions'
local over_v = used_value + held_value + max_value > tonumber(value_limit) and name_of_value_limit(refunds, value_limit)
local over = not limit and (over_n or over_v)
if over and not observes(restrictions, used_actions + max_actions, used_value + held_value + max_value, actions_limit,
  value_limit) then
  limit = over
  flags = note(session, events, audit, now, flags, over_n and 'N' or 'V', 'session.limit_reached', 'limit', limit)
end
if limit then
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end

local expires = string.format('%.0f', math.min(now + lifetime, expires_at + 0))
local used_n, used_v = used_actions + max_actions, used_value + max_value
if not string.find(restrictions or '', 'c', 1, true) then
  restrict(session, restrictions, 'c', held_value, refunds, value_limit)
end
redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v),
  'dn', string.format('%.0f', (delegated_actions or 0) + max_actions), 'dv', string.format('%.0f', (delegated_value
    or 0) + max_value))
redis.call('HSET', parts, child_id, part_of(child_agent, max_actions, max_value, now))
redis.call('ZADD', looks, string.format('%.0f', now), child_id)
redis.call('PEXPIRE', session, as_long_as_parts)
redis.call('PEXPIRE', parts, as_long_as_parts)
redis.call('PEXPIRE', looks, as_long_as_parts)
record(events, audit, now, 'session.delegated', 'session', string.sub(session, -36), 'child', child_id,
  'actions', string.format('%.0f', max_actions), 'delegated', string.format('%.0f', max_value))
flags = note_usage(session, events, audit, now, flags, used_n, tonumber(actions_limit), used_v + held_value, tonumber(value_limit),
  name_of_value_limit(refunds, value_limit))
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_n, over_v)
end
local bounded = ''
if max_committed and max_committed ~= no_max_committed then
  bounded = '1'
end
return {'ok', child_id, expires, string.format('%.0f', depth), held_scopes, string.format('%.0f', now), bounded, per_action_limit
  or '', suspension_version or '0', string.format('%.0f', max_actions), string.format('%.0f', max_value)}
