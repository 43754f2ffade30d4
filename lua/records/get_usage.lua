-- Reads what a session itself has used, by action type and, of the days that are folded, by day.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
--
-- ARGV[4] = anyway           '1' to read it even while holds are due, else ''
--
-- Reply:  {'ok', own_n, own_v, types, days}  actions and micro-USD; types an array of each type and its text, days of each day and
--                          its text, as budgets/include/action_types.lua and include/fold_usage.lua write them
--         {'unknown_agent'}
--         {'invalid_token'}   the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    release_holds.lua goes first, so that a lease whose time is up counts as spent
-- Writes: nothing
--@include session_usage
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id, caller_family, anyway = unpack(ARGV)

--@block now
--@block either_caller session=session

local fields, types, days, session_agent, holds_due = redis.call('HGETALL', session), {}, {}, nil, nil
for i = 1, #fields, 2 do
  local day = string.match(fields[i], '^u:(.*)$')
  if fields[i] == 'a' then
    session_agent = fields[i + 1]
  elseif fields[i] == 'hx' then
    holds_due = fields[i + 1]
  elseif day then
    days[#days + 1] = day
    days[#days + 1] = fields[i + 1]
  end
end
--@block refuse_unknown_session
if anyway == '' then
  --@block refuse_holds_due due=holds_due
end
for name, typed in pairs(used_by_type(fields)) do
  types[#types + 1] = name
  types[#types + 1] = string.format('%d %.0f %.0f', typed.index, typed.n, typed.v)
end
local totals = redis.call('HMGET', session, 'n', 'v', 'lv', 'dn', 'dv', 'kn', 'kv')
local own_n, own_v = own_usage(totals)
return {'ok', string.format('%.0f', own_n), string.format('%.0f', own_v), types, days}
