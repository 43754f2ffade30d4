-- Approves a pending request for more: adds what is granted to the session's limits. The same decision again changes nothing and
-- returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = requests         hash rq:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = request_id       16 bytes
-- ARGV[4] = add_actions      granted, not more than asked for
-- ARGV[5] = add_value        micro-USD granted, not more than asked for
-- ARGV[6] = comment          of who approves, '' for none
-- ARGV[7] = audit            see include/audit.lua
-- ARGV[8] = most_actions     that max_actions may become
-- ARGV[9] = most_value       micro-USD that max_value may become
-- ARGV[10] = granted         as in change_limits.lua
--
-- Arguments: three name the request, three are stored with it; what the limits may become at most is known to Go alone.
--
-- Reply:  {'ok', now, again, grown, ttl, decided_record}  again '1' when it was approved before, else ''; grown and ttl as in
--                                               request_more.lua; the record, see include/requests.lua
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'unknown_request'}
--         {'request_decided'}                   otherwise: denied, or approved with other amounts
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'stale'}        as in change_limits.lua
--         {'beyond_parent'}  as in change_limits.lua
--         {'above_bounds', limit}  limit is max_actions or max_value_usd, which would become more than it may
-- Writes: HSET and PEXPIRE session; HSET and HDEL requests; XADD events
--@include audit
--@include budget
--@include flags
--@include parts
--@include requests
--@include restrict
local agent, session, requests, events = unpack(KEYS)
local organization_id, agent_id, request_id, add_actions, add_value, comment = unpack(ARGV)
local audit, most_actions, most_value, granted = ARGV[7], ARGV[8], ARGV[9], ARGV[10]

--@block now

--@read agent agent_organization agent_revoked
--@block refuse_unknown_agent
--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at refunds holds_due
--@  noted_flags restrictions times_shortened
--@block refuse_unknown_session
--@block find_request
local decided_at = string.format('%d', now)
if status == 'approved' and granted_n == add_actions and granted_v == add_value then
  return {'ok', decided_at, '1', '0', '0', found}
end
--@block refuse_decided
--@block refuse_holds_due due=holds_due
local flags = noted_flags or ''
--@block refuse_inactive
held_value = held_value or '0'
local max_actions, max_value, lifetime = '', '', ''
if add_actions ~= '0' then
  max_actions = '+' .. add_actions
end
if add_value ~= '0' then
  max_value = '+' .. add_value
end
--@block new_limits
--@block within_grant

local changed = {'add_actions', add_actions, 'add_value', add_value}
--@block write_limits
redis.call('HSET', session, 'ma', actions_limit, 'mv', value_limit, 'w', flags)
watch_thresholds(session, flags)
local decided_record = request_record('approved', created, asked_n, asked_v, decided_at, add_actions, add_value, reason, comment)
local grown = keep_decided(requests, request_id, p, d, b, found, decided_record)
record(events, audit, now, 'session.request_approved', 'session', string.sub(session, -36), 'session_request', request_id,
  unpack(changed))
note_usage(session, events, audit, now, flags, tonumber(used_actions), tonumber(actions_limit), used_value + held_value,
  tonumber(value_limit), name_of_value_limit(refunds, value_limit))
local ttl = string.format('%d', redis.call('PTTL', requests))
return {'ok', decided_at, '', grown, ttl, decided_record}
