-- Reads what is used of an agent's limits.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = anyway           '1' to read it even while holds are due, else ''
--
-- Reply:  {'ok', now, restricted, max_open_sessions, open}  now in ms since 1970; the next two as the agent has them, nil for
--                            none; open counts sessions
--         {'unknown_agent'}
--         {'agent_holds_due'}  find_due_sessions.lua goes first
-- Writes: nothing
local agent, agent_open = KEYS[1], KEYS[2]
local organization_id, anyway = ARGV[1], ARGV[2]

--@block now

--@read agent agent_organization agent_restricted max_open_sessions
--@block refuse_unknown_agent
if anyway == '' then
  --@block refuse_agent_holds_due
end
local open = redis.call('ZCOUNT', agent_open, string.format('(%d', now), '+inf')
return {'ok', string.format('%d', now), agent_restricted, max_open_sessions, string.format('%d', open)}
