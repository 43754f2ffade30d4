-- Charges a session: counts actions and value if all of it fits, or changes nothing but what is noted of a refusal.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:', or 'bound:' for a token that is bound to a key, and the 16-byte family id of the access token; ''
--                            when an API key calls
-- ARGV[4] = count            actions
-- ARGV[5] = value            micro-USD
-- ARGV[6] = kind             the field that counts the action type (include/action_types.lua), '' for none; with a scope that the
--                            session must hold, s, the scope and a line break stand before it; with t in place of s, and the scope
--                            maybe '', the reply tells the scopes of a session key's caller
-- ARGV[7] = audit            see include/audit.lua
--
-- Arguments: all of them bear on every charge; taking a packed one apart would cost more than sending them.
--
-- Reply:  {'ok', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             values in micro-USD, held_value with what is leased; expires_at in ms since 1970; refunds as include/budget.lua says,
--             nil for none
--         {'ok', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds, scopes_left}
--             of an agent whose scopes were narrowed; see block/scopes_left.lua. If kind asks for it, '=' and those of the
--             session that the agent has
--         {'ok', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds, scopes_left, limit}
--             where the limit would have refused if the session did not observe; '' for no scopes_left. limit is '' where only a
--             threshold of the agent's day was crossed, or the day is used up exactly
--         {'ok', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds, scopes_left, limit, type_grown}
--             where the action type is new in the session: the bytes that it takes; '' for no limit
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first; so also when the day is over on which the usage counts
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'scope_not_held', scope}
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             limit is max_actions, max_value_usd, max_committed_usd or max_value_usd_per_action; nothing was charged
--         {'agent_holds_due'}  nothing was charged: find_due_sessions.lua goes first
--         {'agent_limit', limit, at}            of the agent, see include/agent_limits.lua; nothing was charged
--             A refusal may still be noted: the first of a limit, and the first that finds the session expired.
-- Writes: HSET session; HSET agent, of one with limits; XADD events for what is first observed
--
-- It runs before every step of every agent. So it reads what few charges need (holds_due, refunds, leased_value, restrictions,
-- noted_flags, scopes) only for those, includes the functions that note something only where something may be noted, and leaves it
-- to arithmetic to make numbers of strings: tonumber would be a call for each. Redis keeps the memory of a call's arguments for the
-- next call, so the long ones stand at the same places.
--@joined
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]
local count, value, kind, audit = ARGV[4] + 0, ARGV[5] + 0, ARGV[6], ARGV[7]

-- Who calls, and when.
--@block now
local second_over = time[1] .. '999' -- a time of thirteen digits that is more, as text, is after this second
--@block either_caller_with_restrictions session=session
local scopes_left
if agent_restricted and string.find(agent_restricted, '^[sn]') then -- the flags of suspension and of fewer scopes come first
  --@block refuse_suspended
  --@block scopes_left
end

-- What the session has used, and may use.
local fields, scope, tells
if kind == '' then
  fields = redis.call('HMGET', session, 'n', agent_id, 'ma', 'v', 'mv', 'h', 'x', 'e')
else
  if kind >= 's' then -- every other kind begins with p: (include/action_types.lua); to compare costs less than to search
    local line = string.find(kind, '\n', 1, true)
    tells, scope, kind = kind >= 't', string.sub(kind, 2, line - 1), string.sub(kind, line + 1)
  end
  fields = redis.call('HMGET', session, 'n', agent_id, 'ma', 'v', 'mv', 'h', 'x', 'e', kind)
end
local used_actions, day_end, actions_limit, used_value = fields[1], fields[2], fields[3], fields[4]
local value_limit, held_value, expires_at, ended_at = fields[5], fields[6], fields[7], fields[8]

-- What goes first: a new day, and holds that are due.
if not day_end or time[1] >= day_end then -- as block/refuse_day_over; with day_end it is the agent's session
  local session_agent = redis.call('HGET', session, 'a')
  --@block refuse_unknown_session
  return {'holds_due'}
end
local held, refunds, leased_value, restrictions = 0, nil, nil, nil
if held_value then
  --@read session session_holds_due session_refunds session_leased_value session_restrictions
  if now >= (session_holds_due or now + 1) + 0 then
    return {'holds_due'}
  end
  held, refunds, leased_value, restrictions = held_value, session_refunds, session_leased_value, session_restrictions
else
  held_value = '0'
end

-- May it be done at all? A session that is not active is refused further below.
local active = not ended_at and not agent_revoked and (second_over < expires_at or now < expires_at + 0)
if restrictions and active then
  --@block refuse_suspended_session restrictions=restrictions
end
if scope and active then
  local scopes = redis.call('HGET', session, 'sc') or redis.call('HGET', agent, 'scopes')
  if scopes_left then
    --@include still_held
    scopes = still_held(scopes, string.sub(scopes_left, 2))
  end
  if scope ~= '' then
    --@block hold_scope held=scopes
  end
  if tells then
    scopes_left = '=' .. scopes
  end
end

-- What it comes to, for the agent and for the session. near is whether it may refuse something, or reach what is to be noted.
-- agent_limit is the agent's limit that refuses it (then restricted_after is nil), that would have refused it if nothing observed, or
-- that is used up exactly.
local restricted_after, agent_limit, at, observed_day, observed_minute, crossed, near
if agent_restricted and active then
  local observing = restrictions and string.find(restrictions, 'o', 1, true)
  --@block count_by_limits restricted=agent_restricted
  near = agent_limit or observed_minute or crossed
end
local actions_after, max_n = used_actions + count, actions_limit + 0
local value_after, max_v = used_value + value, value_limit + 0
local taken = value_after + held
local over_p
if restrictions and active then
  over_p = string.find(restrictions, 'p', 1, true) and value > redis.call('HGET', session, 'mp') + 0 and 'max_value_usd_per_action'
  local next_n, next_v = string.match(restrictions, 't(%d+),(%d+)')
  near = near or over_p or next_n and (actions_after * 100 >= max_n * next_n or taken > 0 and taken * 100 >= max_v * next_v)
end
local new_used_actions = string.format('%d', actions_after)
local new_used_value = value == 0 and used_value or string.format('%d', value_after)
local type_counts -- of the action type, as include/action_types.lua; nil where it has no room
if kind ~= '' then
  local type_number = fields[9]
  type_counts = type_number and type_number + value * 1000000 + count
  if not type_counts or type_counts >= 9000000000000000 or actions_after >= 1000000 and type_number % 1000000 + count >= 1000000 then
    type_counts, near = nil, true
  end
end

-- Far from every limit: write, answer.
local over, type_grown
if active and not near and actions_after * 5 < max_n * 4 and (taken * 5 < max_v * 4 or taken == 0 and max_v == 0) then
  if type_counts then
    redis.call('HSET', session, kind, string.format('%d', type_counts), 'n', new_used_actions, 'v', new_used_value)
  elseif value == 0 then
    redis.call('HSET', session, 'n', new_used_actions)
  else
    redis.call('HSET', session, 'n', new_used_actions, 'v', new_used_value)
  end
  if restricted_after and restricted_after ~= agent_restricted then
    redis.call('HSET', agent, 'restricted', restricted_after)
  end
  --@block answer_charge actions=new_used_actions value=new_used_value
end

-- Near a limit, the first of an action type, or refused.
--@include action_types
--@include audit
--@include agent_limit_notes
--@include flags
--@include observe
local flags = redis.call('HGET', session, 'w') or ''
if not active then
  --@block refuse_inactive
end
local limit = name_of_value_limit(refunds, value_limit)
--@block refuse_over_limit actions=actions_after value=taken
if refused then
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'limit', over, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end
-- The day may be used up only by holds that are due. Without restricted_after the limit refuses; with observed_day it only observes.
if (observed_day or not restricted_after) and agent_limit == 'max_value_usd_per_day'
  and now >= (redis.call('HGET', agent, 'hold_due') or now + 1) + 0 then
  return {'agent_holds_due'}
end
if agent_limit and not restricted_after then
  note_agent_limit(agent, events, audit, now, agent_limit)
  return {'agent_limit', agent_limit, at}
end
if type_counts then
  redis.call('HSET', session, 'n', new_used_actions, 'v', new_used_value, kind, string.format('%d', type_counts))
else
  redis.call('HSET', session, 'n', new_used_actions, 'v', new_used_value)
  if kind ~= '' then
    type_grown = count_anew(session, kind, count, value)
  end
end
if restricted_after and restricted_after ~= agent_restricted then
  redis.call('HSET', agent, 'restricted', restricted_after)
end
--@block note_near_limits actions=actions_after value=taken
if over then
  count_observed(session, 1)
end
--@block answer_charge actions=new_used_actions value=new_used_value
