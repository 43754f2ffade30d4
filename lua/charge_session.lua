-- Charges a session: counts actions and value if, and only if, all of it fits.
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
-- ARGV[6] = scope            that the session must hold, '' for none
-- ARGV[7] = audit            see include/audit.lua
--
-- Reply:  {'ok', n, ma, v, mv, h, x, gb}        actions and their limit; value, its limit and what is held, in
--                                               micro-USD; expiry in ms since 1970; gb as include/budget.lua says, nil
--                                               for none
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
--         {'scope_not_held', scope}
--         {'limit', limit, n, ma, v, mv, h, x, gb}  limit is max_actions, max_value_usd or max_committed_usd; nothing was
--                                               charged
-- Writes: HSET session; XADD events for what is seen the first time
--
-- It runs before every step of every agent. So it reads what few charges need (hx, gb, w, scopes) only for those, and leaves
-- it to arithmetic to make numbers of strings: tonumber would be a call for each.
--@include audit
--@include marks
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family = ARGV[1], ARGV[2], ARGV[3]
local count, value, scope, audit = ARGV[4], ARGV[5], ARGV[6], ARGV[7]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
if holder[3] or (holder[2] and caller_family ~= '') then
  return {'invalid_token'}
end

local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
local h, gb = s[6] or '0', nil
if s[6] then
  local more = redis.call('HMGET', session, 'hx', 'gb')
  if now >= (more[1] or now + 1) + 0 then
    return {'holds_due'}
  end
  gb = more[2]
end
if s[8] or holder[2] or now >= s[7] + 0 then
  if not s[8] and not holder[2] then
    local marks = redis.call('HGET', session, 'w') or ''
    note(session, events, audit, now, marks, 'x', 'session.expired')
  end
  return {'not_active', s[8] or '', holder[2] or '', s[7], string.format('%.0f', now)}
end
if scope ~= '' then
  local scopes = redis.call('HGET', session, 'sc') or redis.call('HGET', agent, 'scopes')
  if not string.find(' ' .. scopes .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end

local n, max_n = s[2] + count, s[3] + 0
local v, max_v = s[4] + value, s[5] + 0
if n > max_n then
  local marks = redis.call('HGET', session, 'w') or ''
  note(session, events, audit, now, marks, 'N', 'session.limit_reached', 'limit', 'max_actions')
  return {'limit', 'max_actions', s[2], s[3], s[4], s[5], h, s[7], gb}
end
if v + h > max_v then
  local marks, limit = redis.call('HGET', session, 'w') or '', value_limit(gb, s[5])
  note(session, events, audit, now, marks, 'V', 'session.limit_reached', 'limit', limit)
  return {'limit', limit, s[2], s[3], s[4], s[5], h, s[7], gb}
end

local used_n, used_v = string.format('%d', n), string.format('%d', v)
redis.call('HSET', session, 'n', used_n, 'v', used_v)
if n * 5 >= max_n * 4 or (v + h) * 5 >= max_v * 4 then
  local marks = redis.call('HGET', session, 'w') or ''
  note_usage(session, events, audit, now, marks, n, max_n, v + h, max_v, value_limit(gb, s[5]))
end
return {'ok', used_n, s[3], used_v, s[5], h, s[7], gb}
