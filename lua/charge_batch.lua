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
-- ARGV[4] = charges          lines of '<count> <value in micro-USD> <scope>', the scope empty for none
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', outcomes}  an array with a reply for each charge: ok, scope_not_held or limit, as charge_session.lua
--                           returns them
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'agent_suspended', since}             in ms since 1970
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
--         {'session_suspended', since}           in ms since 1970
-- Writes: HSET session; XADD events for what is first observed
--@include audit
--@include flags
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family, charges, audit = unpack(ARGV)

--@block now
--@block either_caller_with_scopes
--@block refuse_suspended

local a, n, ma, v, mv, h, x, e, sc, hx, w, gb, lv, r = unpack(redis.call('HMGET', session,
  'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'sc', 'hx', 'w', 'gb', 'lv', 'r'))
--@block refuse_unknown_session
--@block refuse_holds_due hx=hx
local flags = w or ''
--@block refuse_inactive
--@block refuse_suspended_session r=r

h, gb = h or '0', gb or nil
local used_n, max_n, used_v, max_v, held = tonumber(n), tonumber(ma), tonumber(v), tonumber(mv), tonumber(h)
local leased, limit = tonumber(lv or 0), value_limit(gb, mv)
local scopes, scopes_held = ' ' .. (sc or agent_scopes) .. ' ', ' ' .. agent_scopes .. ' '
h = string.format('%.0f', held + leased) -- leased value is shown as held
local outcomes = {}
for count, value, scope in string.gmatch(charges, '(%d+) (%d+) (%S*)\n') do
  local outcome
  local wanted = ' ' .. scope .. ' '
  if scope ~= '' and not (string.find(scopes, wanted, 1, true) and string.find(scopes_held, wanted, 1, true)) then
    outcome = {'scope_not_held', scope}
  elseif used_n + count > max_n then
    flags = note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
    outcome = {'limit', 'max_actions', string.format('%.0f', used_n), ma, string.format('%.0f', used_v - leased), mv, h, x, gb}
  elseif used_v + value + held > max_v then
    flags = note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
    outcome = {'limit', limit, string.format('%.0f', used_n), ma, string.format('%.0f', used_v - leased), mv, h, x, gb}
  else
    used_n, used_v = used_n + count, used_v + value
    outcome = {'ok', string.format('%.0f', used_n), ma, string.format('%.0f', used_v - leased), mv, h, x, gb}
    flags = note_usage(session, events, audit, now, flags, used_n, max_n, used_v + held, max_v, limit)
  end
  outcomes[#outcomes + 1] = outcome
end

if used_n > tonumber(n) then
  redis.call('HSET', session, 'n', string.format('%.0f', used_n), 'v', string.format('%.0f', used_v))
end
return {'ok', outcomes}
