-- Deletes a session key: scripts find it in the session's hash no more.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = key_id           16 bytes
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'unknown_session_key'}
-- Writes: HDEL and HSET session; XADD events
--@include audit
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, key_id, audit = unpack(ARGV)

--@block now
--@read agent agent_organization
--@block refuse_unknown_agent
--@read session session_agent session_keys
--@block refuse_unknown_session
if redis.call('HEXISTS', session, 'key:' .. key_id) == 0 then
  return {'unknown_session_key'}
end

redis.call('HDEL', session, 'key:' .. key_id)
local others = ''
for i = 1, #session_keys, 16 do
  local id = string.sub(session_keys, i, i + 15)
  if id ~= key_id then
    others = others .. id
  end
end
redis.call('HSET', session, 'sk', others)
record(events, audit, now, 'session.key_deleted', 'session', string.sub(session, -36), 'session_key', key_id)
return {'ok'}
