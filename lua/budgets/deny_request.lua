-- Denies a pending request for more. The same decision again changes nothing and returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = requests         hash rq:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = request_id       16 bytes
-- ARGV[4] = comment          of who denies, '' for none
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', now, again, grown, ttl, decided_record}  as approve_request.lua
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'unknown_request'}
--         {'request_decided'}                   otherwise: it is approved
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
-- Writes: HSET and HDEL requests; XADD events; HSET session when it first observes the expiry
--@include audit
--@include flags
--@include requests
local agent, session, requests, events = unpack(KEYS)
local organization_id, agent_id, request_id, comment, audit = unpack(ARGV)

--@block now

--@read agent agent_organization agent_revoked
--@block refuse_unknown_agent
--@read session session_agent expires_at ended_at noted_flags
--@block refuse_unknown_session
--@block find_request
local decided_at = string.format('%d', now)
if status == 'denied' then
  return {'ok', decided_at, '1', '0', '0', found}
end
--@block refuse_decided
local flags = noted_flags or ''
--@block refuse_inactive

local decided_record = request_record('denied', created, asked_n, asked_v, decided_at, '0', '0', reason, comment)
local grown = keep_decided(requests, request_id, p, d, b, found, decided_record)
record(events, audit, now, 'session.request_denied', 'session', string.sub(session, -36), 'session_request', request_id)
local ttl = string.format('%d', redis.call('PTTL', requests))
return {'ok', decided_at, '', grown, ttl, decided_record}
