-- Asks for more than a session's limits allow: stores a pending request, which approve_request.lua or deny_request.lua decides.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = requests         hash rq:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the access token
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token
-- ARGV[4] = request_id       16 bytes
-- ARGV[5] = add_actions      asked for
-- ARGV[6] = add_value        micro-USD asked for
-- ARGV[7] = reason           of the agent
-- ARGV[8] = audit            see include/audit.lua
-- ARGV[9] = retention        ms that the session stays readable after its lifetime
--
-- Arguments: three name the caller, three are stored.
--
-- Reply:  {'ok', request_id, created, grown, ttl}  created in ms since 1970; grown what the memory of the session's requests
--                                               grew by beyond the most that it ever was; ttl their ms to live
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'limit', limit, used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
--             limit is max_pending_requests, the rest as in charge_session.lua
-- Writes: HSET, HDEL and PEXPIRE requests; XADD events; HSET session when it first observes the expiry
--@include audit
--@include flags
--@include requests
local agent, session, requests, events = unpack(KEYS)
local organization_id, agent_id, caller_family, request_id, add_actions, add_value, reason, audit, retention = unpack(ARGV)

--@block now
--@block agent_caller session=session

--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at refunds holds_due
--@  noted_flags leased_value restrictions
--@block refuse_unknown_session
--@block refuse_holds_due due=holds_due
local flags = noted_flags or ''
--@block refuse_inactive
--@read requests p b
if #(p or '') >= 8 * 16 then
  held_value = held_value or '0'
  --@block show_leased value=used_value held=held_value leased=leased_value
  --@block show_delegated actions=used_actions value=used_value refunds=refunds restrictions=restrictions
  return {'limit', 'max_pending_requests', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, refunds}
end

local created, kept = string.format('%d', now), redis.call('PTTL', session)
if restrictions and string.find(restrictions, '[kc]') then -- it stays until it is settled, see lua/budgets/README.md
  kept = expires_at - now + retention
end
local ttl = string.format('%d', kept)
local asked = request_record('pending', created, add_actions, add_value, '0', '0', '0', reason, '')
local grown, counted = count_records(b, #asked + 120)
redis.call('HSET', requests, request_id, asked, 'p', (p or '') .. request_id, 'b', counted)
--@block extend_ttl key=requests
record(events, audit, now, 'session.more_requested', 'session', string.sub(session, -36), 'session_request', request_id,
  'add_actions', add_actions, 'add_value', add_value)
return {'ok', request_id, created, grown, ttl}
