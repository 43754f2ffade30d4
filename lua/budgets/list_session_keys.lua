-- Reads the keys of a session that live, oldest first. They are at most 8.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = agent_id         16 bytes
--
-- Reply:  {'ok', keys}     an array: of each its id, 16 bytes, and '<created> <name>', created in ms since 1970
--         {'unknown_agent'}
--         {'unknown_session'}
-- Writes: nothing
--@include session_keys
local agent, session = KEYS[1], KEYS[2]
local organization_id, agent_id = ARGV[1], ARGV[2]

--@read agent agent_organization agent_revoked agent_epoch
--@block refuse_unknown_agent
--@read session session_agent session_keys
--@block refuse_unknown_session
local keys = {}
for _, id in ipairs(keys_by_epoch(not agent_revoked and session_keys or '', agent_epoch)) do
  keys[#keys + 1] = id
  keys[#keys + 1] = redis.call('HGET', session, 'key:' .. id)
end
return {'ok', keys}
