-- Creates a session key: with it its holder acts as the session's agent, in that session alone. Its id names the agent's epoch, as that
-- of an access token without a refresh token does, so scripts refuse it as they refuse such a token. The key itself is stored nowhere:
-- Go derives it.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = drawn            16 bytes, the id that was drawn for the key
-- ARGV[4] = name             '' for none
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', key_id, created, ttl}  key_id 16 bytes; created in ms since 1970; ttl the session's ms to live
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'not_active', ended, revoked, expires_at, now}  in ms since 1970, '' if it has not happened
--         {'unbound_session_key'}  the agent's tokens must be bound to a key
--         {'many_session_keys'}    8 of the session live
-- Writes: HSET and HDEL session; XADD events; HSET session when it first observes the expiry
--@include audit
--@include flags
--@include session_keys
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, drawn, name, audit = unpack(ARGV)

--@block now
--@read agent agent_organization agent_revoked agent_restricted agent_epoch
--@block refuse_unknown_agent
--@read session session_agent expires_at ended_at noted_flags session_keys
--@block refuse_unknown_session
local flags = noted_flags or ''
--@block refuse_inactive
if agent_restricted and string.find(agent_restricted, 'p', 1, true) then
  return {'unbound_session_key'}
end
local live, ended, epoch = keys_by_epoch(session_keys or '', agent_epoch)
if #live >= 8 then
  return {'many_session_keys'}
end

for _, id in ipairs(ended) do
  redis.call('HDEL', session, 'key:' .. id)
end
local key_id, created = string.sub(drawn, 1, 9) .. epoch .. string.sub(drawn, 13), string.format('%d', now)
redis.call('HSET', session, 'sk', table.concat(live) .. key_id, 'key:' .. key_id, created .. ' ' .. name)
record(events, audit, now, 'session.key_created', 'session', string.sub(session, -36), 'session_key', key_id)
return {'ok', key_id, created, string.format('%d', redis.call('PTTL', session))}
