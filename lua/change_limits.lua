-- Changes the limits of an active session, never below what is used and held. Limits that were noted as nearly or wholly
-- used are new ones now, and are noted again.
--
-- KEYS[1] = agent                 hash a:{cell}:<agent>
-- KEYS[2] = session               hash s:{cell}:<session>
-- KEYS[3] = agent_sessions        zset as:{cell}:<agent>
-- KEYS[4] = session_transactions  zset stx:{cell}:<session>
-- KEYS[5] = events                stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id       16 bytes, of the organization that asks
-- ARGV[2] = agent_id              16 bytes
-- ARGV[3] = max_actions           '' to leave it; '+' and what to add to it
-- ARGV[4] = max_value             micro-USD, '' to leave it; '+' and what to add to it
-- ARGV[5] = lifetime              ms from now, '' to leave it
-- ARGV[6] = retention             ms that the session stays readable after its lifetime
-- ARGV[7] = audit                 see include/audit.lua
-- ARGV[8] = most_actions          that max_actions may become
-- ARGV[9] = most_value            micro-USD that max_value may become
--
-- Reply:  {'ok', now, revoked, scopes, session}  as get_session.lua, after the change
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
--         {'below_usage', limit, n, ma, v, mv, h, x, gb}  limit is max_actions or max_value_usd, the rest as it stands
--         {'above_bounds', limit}  limit is max_actions or max_value_usd, which would become more than it may
-- Writes: HSET and PEXPIRE session; PEXPIRE agent_sessions and session_transactions; XADD events
--@include audit
--@include budget
--@include marks
local agent, session, agent_sessions, session_transactions, events = unpack(KEYS)
local organization_id, agent_id, max_actions, max_value, lifetime, retention, audit, most_actions, most_value = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'ov', 'gb', 'md', 'hx', 'w')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
local held, marks = tonumber(s[6] or 0), s[15] or ''
if s[14] and now >= tonumber(s[14]) then
  return {'holds_due'}
end
s[6], s[14], s[15] = string.format('%.0f', held), nil, nil
if s[8] or holder[2] or now >= tonumber(s[7]) then
  if not s[8] and not holder[2] then
    note(session, events, audit, now, marks, 'x', 'session.expired')
  end
  return {'not_active', s[8] or '', holder[2] or '', s[7], string.format('%.0f', now)}
end
local given_back, max_committed, old_max_value = read_budget(s[12], s[5])
if string.sub(max_actions, 1, 1) == '+' then
  max_actions = string.format('%.0f', s[3] + string.sub(max_actions, 2))
end
if string.sub(max_value, 1, 1) == '+' then
  max_value = string.format('%.0f', old_max_value + string.sub(max_value, 2))
end
if max_actions ~= '' and tonumber(max_actions) > tonumber(most_actions) then
  return {'above_bounds', 'max_actions'}
end
if max_value ~= '' and tonumber(max_value) > tonumber(most_value) then
  return {'above_bounds', 'max_value_usd'}
end
if max_actions ~= '' and tonumber(max_actions) < tonumber(s[2]) then
  return {'below_usage', 'max_actions', s[2], s[3], s[4], s[5], s[6], s[7], s[12]}
end
if max_value ~= '' and tonumber(max_value) < tonumber(s[4]) + held then
  return {'below_usage', 'max_value_usd', s[2], s[3], s[4], s[5], s[6], s[7], s[12]}
end

local changed = {}
if max_actions ~= '' then
  s[3], marks = max_actions, string.gsub(marks, '[nN]', '')
  changed[#changed + 1] = 'max_actions'
  changed[#changed + 1] = max_actions
end
if max_value ~= '' then
  marks = string.gsub(marks, '[vV]', '')
  if max_committed then
    s[12], s[5] = write_budget(given_back, max_committed, max_value)
    redis.call('HSET', session, 'gb', s[12])
  else
    s[5] = max_value
  end
  changed[#changed + 1] = 'max_value'
  changed[#changed + 1] = max_value
end
if lifetime ~= '' then
  s[7] = string.format('%.0f', now + lifetime)
  changed[#changed + 1] = 'expires'
  changed[#changed + 1] = s[7]
  local kept = lifetime + retention
  -- Never sooner than before: transactions may hold longer than the session lasts.
  if redis.call('PTTL', session) < kept then
    redis.call('PEXPIRE', session, string.format('%.0f', kept))
  end
  if redis.call('PTTL', agent_sessions) < kept then
    redis.call('PEXPIRE', agent_sessions, string.format('%.0f', kept))
  end
  if redis.call('PTTL', session_transactions) < kept then
    redis.call('PEXPIRE', session_transactions, string.format('%.0f', kept))
  end
end
redis.call('HSET', session, 'ma', s[3], 'mv', s[5], 'x', s[7], 'w', marks)
record(events, audit, now, 'session.limits_changed', 'session', string.sub(session, -36), unpack(changed))
note_usage(session, events, audit, now, marks, tonumber(s[2]), tonumber(s[3]), s[4] + held, tonumber(s[5]),
  value_limit(s[12], s[5]))
return {'ok', string.format('%.0f', now), holder[2] or '', holder[3], s}
