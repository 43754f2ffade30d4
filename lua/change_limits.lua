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
-- ARGV[3] = max_actions           '' to leave it
-- ARGV[4] = max_value             micro-USD, '' to leave it
-- ARGV[5] = lifetime              ms from now, '' to leave it
-- ARGV[6] = retention             ms that the session stays readable after its lifetime
-- ARGV[7] = audit                 see include/audit.lua
--
-- Reply:  {'ok', now, revoked, scopes, session}  as get_session.lua, after the change
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' for what has not happened
--         {'below_usage', limit, n, ma, v, mv, h, x}  limit is max_actions or max_value_usd, the rest as it stands
-- Writes: HSET and PEXPIRE session; PEXPIRE agent_sessions and session_transactions; XADD events
--@include audit
--@include marks
local agent, session, agent_sessions, session_transactions, events = unpack(KEYS)
local organization_id, agent_id, max_actions, max_value, lifetime, retention, audit = unpack(ARGV)

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'organization', 'revoked', 'scopes')
if holder[1] ~= organization_id then
  return {'unknown_agent'}
end
local s = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'ov', 'md', 'hx', 'w')
if s[1] ~= agent_id then
  return {'unknown_session'}
end
local held, marks = tonumber(s[6] or 0), s[14] or ''
if s[13] and now >= tonumber(s[13]) then
  return {'holds_due'}
end
s[6], s[13], s[14] = string.format('%.0f', held), nil, nil
if s[8] or holder[2] or now >= tonumber(s[7]) then
  if not s[8] and not holder[2] then
    note(session, events, audit, now, marks, 'x', 'session.expired')
  end
  return {'not_active', s[8] or '', holder[2] or '', s[7], string.format('%.0f', now)}
end
if max_actions ~= '' and tonumber(max_actions) < tonumber(s[2]) then
  return {'below_usage', 'max_actions', s[2], s[3], s[4], s[5], s[6], s[7]}
end
if max_value ~= '' and tonumber(max_value) < tonumber(s[4]) + held then
  return {'below_usage', 'max_value_usd', s[2], s[3], s[4], s[5], s[6], s[7]}
end

local changed = {}
if max_actions ~= '' then
  s[3], marks = max_actions, string.gsub(marks, '[nN]', '')
  changed[#changed + 1] = 'max_actions'
  changed[#changed + 1] = max_actions
end
if max_value ~= '' then
  s[5], marks = max_value, string.gsub(marks, '[vV]', '')
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
note_usage(session, events, audit, now, marks, tonumber(s[2]), tonumber(s[3]), s[4] + held, tonumber(s[5]))
return {'ok', string.format('%.0f', now), holder[2] or '', holder[3], s}
