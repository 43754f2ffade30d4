-- Deletes a session key. Its id is marked in the agent's hash as that of a revoked family is, for longer than its session can last: that
-- may be extended again and again.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = key_id           as text
-- ARGV[4] = marked_key       'family:' and its 16 bytes: the field that marks it
-- ARGV[5] = mark_ttl         ms that the mark stays
-- ARGV[6] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
--         {'unknown_agent'}
--         {'unknown_session'}
--         {'unknown_session_key'}
-- Writes: HDEL and HSET session; HSET agent; XADD events
--@include audit
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, key_id, marked_key, mark_ttl, audit = unpack(ARGV)

--@block now
--@read agent agent_organization
--@block refuse_unknown_agent
--@read session session_agent session_keys
--@block refuse_unknown_session
local from, to = string.find(session_keys or '', ' ' .. key_id, 1, true)
if not from then
  return {'unknown_session_key'}
end

redis.call('HDEL', session, 'k:' .. key_id)
redis.call('HSET', agent, marked_key, string.format('%d', now + mark_ttl))
redis.call('HSET', session, 'sk', string.sub(session_keys, 1, from - 1) .. string.sub(session_keys, to + 1))
record(events, audit, now, 'session.key_deleted', 'session', string.sub(session, -36), 'session_key', key_id)
return {'ok'}
