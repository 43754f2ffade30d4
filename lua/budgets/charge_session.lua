-- Charges a session: counts actions and value if all of it fits, or changes nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = count            actions
-- ARGV[5] = value            micro-USD
-- ARGV[6] = kind             the field that counts the action type (include/action_types.lua), '' for none; with a scope that the
--                            session must hold, s, the scope and a line break stand before it
-- ARGV[7] = audit            see include/audit.lua
--
-- Arguments: all of them bear on every charge; taking a packed one apart would cost more than sending them.
--
-- Reply:  {'ok', n, ma, v, mv, h, x, gb}        actions and their limit; value, its limit and what is held or
--                                               leased, in micro-USD; expiry in ms since 1970; gb as include/budget.lua says, nil
--                                               for none
--         {'ok', n, ma, v, mv, h, x, gb, scopes_left}  of an agent whose scopes were narrowed; see block/scopes_left.lua
--         {'ok', n, ma, v, mv, h, x, gb, scopes_left, limit}  where the limit would have refused if the session did not
--                                               observe; '' for no scopes_left. '' for no limit, where a threshold of the agent's
--                                               day was crossed
--         {'ok', n, ma, v, mv, h, x, gb, scopes_left, limit, type_grown}  where the action type is new in the session: the bytes
--                                               that it takes; '' for no limit
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first, or the day is over
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
--         {'agent_holds_due'}  nothing was done: find_due_sessions.lua goes first
--         {'scope_not_held', scope}
--         {'limit', limit, n, ma, v, mv, h, x, gb}  limit is max_actions, max_value_usd, max_committed_usd or
--                                               max_value_usd_per_action; nothing was charged
--         {'agent_limit', limit, at}            of the agent, see include/agent_limits.lua; nothing was charged
-- Writes: HSET session; HSET agent, of one with limits; XADD events for what is first observed
--
-- It runs before every step of every agent. So it reads what few charges need (hx, gb, lv, r, w, scopes) only for those, includes the
-- functions that note something only where something may be noted, and leaves it to arithmetic to make numbers of strings:
-- tonumber would be a call for each. Redis keeps the memory of a call's arguments for the next call, so the long ones stand at
-- the same places.
--@joined
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]
local count, value, kind, audit = ARGV[4] + 0, ARGV[5] + 0, ARGV[6], ARGV[7]

--@block now
local second_over = time[1] .. '999' -- a time of thirteen digits that is more, as text, is after this second
--@block either_caller_with_restrictions
local scopes_left
if agent_restricted and string.find(agent_restricted, '^[sn]') then
  --@block refuse_suspended
  --@block scopes_left
end

local fields, scope
if kind == '' then
  fields = redis.call('HMGET', session, 'n', agent_id, 'ma', 'v', 'mv', 'h', 'x', 'e')
else
  if kind >= 's' then -- costs less than to search each kind
    local line = string.find(kind, '\n', 1, true)
    scope, kind = string.sub(kind, 2, line - 1), string.sub(kind, line + 1)
  end
  fields = redis.call('HMGET', session, 'n', agent_id, 'ma', 'v', 'mv', 'h', 'x', 'e', kind)
end
local n, d, ma, v, mv, h, x, e = fields[1], fields[2], fields[3], fields[4], fields[5], fields[6], fields[7], fields[8]
if not d or time[1] >= d then -- as block/refuse_day_over; with d it is the agent's session
  local a = redis.call('HGET', session, 'a')
  --@block refuse_unknown_session
  return {'holds_due'}
end
local held, gb, lv, r = 0, nil, nil, nil
if h then
  local s_hx, s_gb, s_lv, s_r = unpack(redis.call('HMGET', session, 'hx', 'gb', 'lv', 'r'))
  if now >= (s_hx or now + 1) + 0 then
    return {'holds_due'}
  end
  held, gb, lv, r = h, s_gb, s_lv, s_r
else
  h = '0'
end
local active = not e and not agent_revoked and (second_over < x or now < x + 0)
if r and active then
  --@block refuse_suspended_session r=r
end
if scope and active then
  local scopes = redis.call('HGET', session, 'sc') or redis.call('HGET', agent, 'scopes')
  --@block hold_scope held=scopes
  if scopes_left then
    local held_still = string.sub(scopes_left, 2)
    --@block hold_scope held=held_still
  end
end

local counted, limited, at, over_day, over_minute, crossed, near
if agent_restricted and active then
  local observing = r and string.find(r, 'o', 1, true)
  --@block count_by_limits restricted=agent_restricted
  near = limited or over_minute or crossed
end

local after_n, max_n = n + count, ma + 0
local after_v, max_v = v + value, mv + 0
local taken_v = after_v + held
local over_p
if r and active then
  over_p = string.find(r, 'p', 1, true) and value > redis.call('HGET', session, 'mp') + 0 and 'max_value_usd_per_action'
  local next_n, next_v = string.match(r, 't(%d+),(%d+)')
  near = near or over_p or next_n and (after_n * 100 >= max_n * next_n or taken_v > 0 and taken_v * 100 >= max_v * next_v)
end
local used_n, used_v = string.format('%d', after_n), value == 0 and v or string.format('%d', after_v)
local counts -- as include/action_types.lua; nil where it has no room
if kind ~= '' then
  local type_number = fields[9]
  counts = type_number and type_number + value * 1000000 + count
  if not counts or counts >= 9000000000000000 or after_n >= 1000000 and type_number % 1000000 + count >= 1000000 then
    counts, near = nil, true
  end
end
if active and not near and after_n * 5 < max_n * 4 and (taken_v * 5 < max_v * 4 or taken_v == 0 and max_v == 0) then
  if counts then
    redis.call('HSET', session, kind, string.format('%d', counts), 'n', used_n, 'v', used_v)
  elseif value == 0 then
    redis.call('HSET', session, 'n', used_n)
  else
    redis.call('HSET', session, 'n', used_n, 'v', used_v)
  end
  if counted and counted ~= agent_restricted then
    redis.call('HSET', agent, 'restricted', counted)
  end
  --@block show_leased v=used_v h=h lv=lv
  --@block show_delegated n=used_n v=used_v gb=gb r=r
  if scopes_left then
    return {'ok', used_n, ma, used_v, mv, h, x, gb or '', scopes_left}
  end
  return {'ok', used_n, ma, used_v, mv, h, x, gb}
end

-- What follows refuses, comes near a limit, or counts an action type for the first time.
--@include action_types
--@include audit
--@include agent_limit_notes
--@include flags
--@include observe
local flags = redis.call('HGET', session, 'w') or ''
if not active then
  if not e and not agent_revoked then
    note(session, events, audit, now, flags, 'x', 'session.expired')
  end
  return {'not_active', e or '', agent_revoked or '', x, string.format('%d', now)}
end
local limit = value_limit(gb, mv)
local over_n, over_v = after_n > max_n and 'max_actions', taken_v > max_v and limit
local over = over_p or over_n or over_v
if over and not observes(r, after_n, taken_v, max_n, max_v) then
  over = refusing(r, over_p, over_n, over_v)
  note(session, events, audit, now, flags, over == over_p and 'P' or over == over_n and 'N' or 'V', 'session.limit_reached', 'limit', over)
  --@block show_leased v=v h=h lv=lv
  --@block show_delegated n=n v=v gb=gb r=r
  return {'limit', over, n, ma, v, mv, h, x, gb}
end
if (over_day or not counted) and limited == 'max_value_usd_per_day'
  and now >= (redis.call('HGET', agent, 'hold_due') or now + 1) + 0 then
  return {'agent_holds_due'}
end
if limited and not counted then
  note_agent_limit(agent, events, audit, now, limited)
  return {'agent_limit', limited, at}
end
local type_grown
if counts then
  redis.call('HSET', session, 'n', used_n, 'v', used_v, kind, string.format('%d', counts))
else
  redis.call('HSET', session, 'n', used_n, 'v', used_v)
  if kind ~= '' then
    type_grown = count_anew(session, kind, count, value)
  end
end
if counted and counted ~= agent_restricted then
  redis.call('HSET', agent, 'restricted', counted)
end
if limited then
  note_agent_limit(agent, events, audit, now, limited)
end
crossed = crossed or limited
if crossed and counted then
  note_agent_day(agent, events, audit, now, counted)
end
flags = note_usage(session, events, audit, now, flags, after_n, max_n, taken_v, max_v, limit)
--@block show_leased v=used_v h=h lv=lv
--@block show_delegated n=used_n v=used_v gb=gb r=r
over = over or over_day or over_minute
if over then
  count_observed(session, 1)
  note_observed(session, events, audit, now, flags, over_p, over_n, over_v, over_day, over_minute)
end
if type_grown then
  return {'ok', used_n, ma, used_v, mv, h, x, gb or '', scopes_left or '', over or '', type_grown}
end
if over or crossed then
  return {'ok', used_n, ma, used_v, mv, h, x, gb or '', scopes_left or '', over or ''}
end
if scopes_left then
  return {'ok', used_n, ma, used_v, mv, h, x, gb or '', scopes_left}
end
return {'ok', used_n, ma, used_v, mv, h, x, gb}
