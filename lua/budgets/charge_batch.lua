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
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
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
--@block either_caller_with_both session=session
--@block refuse_suspended

--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at own_scopes
--@  holds_due noted_flags refunds leased_value restrictions per_action_limit day_end=agent_id
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
--@block refuse_day_over agent=session_agent ends=day_end
--@block refuse_agent_holds_due
local flags = noted_flags or ''
--@block refuse_inactive
--@block refuse_suspended_session restrictions=restrictions

held_value, refunds = held_value or '0', refunds or nil
local used_n, max_n, used_v, max_v, held = tonumber(used_actions), tonumber(actions_limit), tonumber(used_value),
  tonumber(value_limit), tonumber(held_value)
local leased, limit = tonumber(leased_value or 0), name_of_value_limit(refunds, value_limit)
local scopes, scopes_held = ' ' .. (own_scopes or agent_scopes) .. ' ', ' ' .. agent_scopes .. ' '
held_value = string.format('%.0f', held + leased) -- leased value is shown as held
local delegated_n = 0
if restrictions and string.find(restrictions, 'c', 1, true) then -- as block/show_delegated.lua
  --@read session session_delegated_actions session_delegated_value
  delegated_n, leased, refunds = tonumber(session_delegated_actions), leased + session_delegated_value,
    refunds .. ' ' .. session_delegated_actions .. ' ' .. session_delegated_value
end
local outcomes, observed, restricted, types = {}, 0, agent_restricted, {}
for count, value, scope, kind in string.gmatch(charges, '(%d+) (%d+) (%S*) ?([^\n]*)\n') do
  local over_p = per_action_limit and value + 0 > per_action_limit + 0 and 'max_value_usd_per_action'
  local actions_after, taken = used_n + count, used_v + value + held
  local over, outcome, restricted_after, agent_limit, at, observed_day, observed_minute, crossed
  if restricted then
    restricted_after, agent_limit, at, observed_day, observed_minute, crossed =
      within_limits(restricted, now, count, value, is_observing(restrictions))
  end
  local wanted = ' ' .. scope .. ' '
  if scope ~= '' and not (string.find(scopes, wanted, 1, true) and string.find(scopes_held, wanted, 1, true)) then
    outcome = {'scope_not_held', scope}
  else
    --@block refuse_over_limit actions=actions_after value=taken
    if refused then
      outcome = {'limit', over, string.format('%.0f', used_n - delegated_n), actions_limit, string.format('%.0f', used_v - leased),
        value_limit, held_value, expires_at, refunds}
    elseif agent_limit and not restricted_after then
      note_agent_limit(agent, events, audit, now, agent_limit)
      outcome = {'agent_limit', agent_limit, at}
    else
      used_n, used_v, restricted = actions_after, used_v + value, restricted_after or restricted
      local typed = types[kind] or {n = 0, v = 0}
      types[kind] = {n = typed.n + count, v = typed.v + value}
      outcome = {'ok', string.format('%.0f', used_n - delegated_n), actions_limit, string.format('%.0f', used_v - leased),
        value_limit, held_value, expires_at, refunds}
      --@block note_near_limits actions=actions_after value=taken
      if over then
        observed = observed + 1
      end
      if over or crossed or agent_limit then
        outcome[8], outcome[9], outcome[10] = refunds or '', '', over or ''
      end
    end
  end
  outcomes[#outcomes + 1] = outcome
end

if used_n > tonumber(used_actions) then
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
