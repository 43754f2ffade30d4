-- Charges a session several times in order. Each charge fits whole or is refused, as if charge_session.lua ran for
-- each.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = charges          lines of '<count> <value in micro-USD> <scope>', the scope empty for none; with an action
--                            type a space and the type follow
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', outcomes, grown}  an array with a reply for each charge: ok, scope_not_held, limit or agent_limit, as
--                           charge_session.lua returns them; and the bytes that new action types take, '0' for none
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'agent_holds_due'}  nothing was done: find_due_sessions.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
-- Writes: HSET session and agent; XADD events for what is first observed
--@include action_types
--@include audit
--@include agent_limit_notes
--@include agent_limits
--@include flags
--@include observe
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family, charges, audit = unpack(ARGV)

--@block now
--@block either_caller_with_both
--@block refuse_suspended

local a, n, ma, v, mv, h, x, e, sc, hx, w, gb, lv, r, mp, d = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'sc', 'hx', 'w', 'gb', 'lv', 'r', 'mp', agent_id))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
--@block refuse_day_over a=a d=d
--@block refuse_agent_holds_due
local flags = w or ''
--@block refuse_inactive
--@block refuse_suspended_session r=r

h, gb = h or '0', gb or nil
local used_n, max_n, used_v, max_v, held = tonumber(n), tonumber(ma), tonumber(v), tonumber(mv), tonumber(h)
local leased, limit = tonumber(lv or 0), value_limit(gb, mv)
local scopes, scopes_held = ' ' .. (sc or agent_scopes) .. ' ', ' ' .. agent_scopes .. ' '
h = string.format('%.0f', held + leased) -- leased value is shown as held
local delegated_n = 0
if r and string.find(r, 'c', 1, true) then -- as block/show_delegated.lua
  local s_dn, s_dv = unpack(redis.call('HMGET', session, 'dn', 'dv'))
  delegated_n, leased, gb = tonumber(s_dn), leased + s_dv, gb .. ' ' .. s_dn .. ' ' .. s_dv
end
local outcomes, observed, restricted, types = {}, 0, agent_restricted, {}
for count, value, scope, kind in string.gmatch(charges, '(%d+) (%d+) (%S*) ?([^\n]*)\n') do
  local over_p = mp and value + 0 > mp + 0 and 'max_value_usd_per_action'
  local over_n, over_v = used_n + count > max_n and 'max_actions', used_v + value + held > max_v and limit
  local over, outcome, counted, limited, at, over_day, over_minute, crossed = over_p or over_n or over_v, nil, nil, nil, nil, nil, nil, nil
  if restricted then
    counted, limited, at, over_day, over_minute, crossed = within_limits(restricted, now, count, value, is_observing(r))
  end
  local wanted = ' ' .. scope .. ' '
  if scope ~= '' and not (string.find(scopes, wanted, 1, true) and string.find(scopes_held, wanted, 1, true)) then
    outcome = {'scope_not_held', scope}
  elseif over and not observes(r, used_n + count, used_v + value + held, max_n, max_v) then
    over = refusing(r, over_p, over_n, over_v)
    flags = note(session, events, audit, now, flags, over == over_p and 'P' or over == over_n and 'N' or 'V', 'session.limit_reached', 'limit', over)
    outcome = {'limit', over, string.format('%.0f', used_n - delegated_n), ma, string.format('%.0f', used_v - leased), mv, h, x, gb}
  elseif limited and not counted then
    note_agent_limit(agent, events, audit, now, limited)
    outcome = {'agent_limit', limited, at}
  else
    used_n, used_v, restricted = used_n + count, used_v + value, counted or restricted
    local typed = types[kind] or {n = 0, v = 0}
    types[kind] = {n = typed.n + count, v = typed.v + value}
    if limited then
      note_agent_limit(agent, events, audit, now, limited)
    end
    outcome = {'ok', string.format('%.0f', used_n - delegated_n), ma, string.format('%.0f', used_v - leased), mv, h, x, gb}
    if crossed or limited then
      note_agent_day(agent, events, audit, now, counted)
      outcome[8], outcome[9], outcome[10] = gb or '', '', ''
    end
    flags = note_usage(session, events, audit, now, flags, used_n, max_n, used_v + held, max_v, limit)
    over = over or over_day or over_minute
    if over then
      observed = observed + 1
      flags = note_observed(session, events, audit, now, flags, over_p, over_n, over_v, over_day, over_minute)
      outcome[8], outcome[9], outcome[10] = gb or '', '', over
    end
  end
  outcomes[#outcomes + 1] = outcome
end

if used_n > tonumber(n) then
  redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v))
end
local grown = 0
for kind, typed in pairs(types) do
  if kind ~= '' then
    local _, type_grown = count_type(session, kind, typed.n, typed.v)
    grown = grown + type_grown
  end
end
if observed > 0 then
  count_observed(session, observed)
end
if restricted ~= agent_restricted then
  redis.call('HSET', agent, 'restricted', restricted)
end
return {'ok', outcomes, string.format('%d', grown)}
