-- Changes an agent. Scopes that it no longer has are refused from now on, whatever its tokens and sessions say; those were
-- issued from the scopes that it had, so a flag makes scripts compare. A change to what the agent is already changes
-- nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
-- KEYS[3] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = name             '=' and the name, '' to leave it; the next three alike
-- ARGV[3] = scopes           separated by single spaces
-- ARGV[4] = description      '=' alone for none
-- ARGV[5] = metadata         JSON object, '=' alone for none
-- ARGV[6] = audit            see include/audit.lua
-- ARGV[7] = limits           as wanted in include/set_agent_limits.lua, '' to leave them
--
-- Arguments: each may be left as it is, so none follows from another.
--
-- Reply:  {'ok', before, agent, now, open}  as block/agent_state.lua reads it: name, scopes, description and metadata before, and the
--                            agent after the change; now in ms since 1970; open counts sessions
--         {'unknown_agent'}
--         {'agent_revoked'}
-- Writes: HSET and HDEL agent, UNLINK agent_open and XADD events, if something changes
--@include audit
--@include agent_limit_notes
--@include restrict_agent
--@include set_agent_limits
local agent, events, agent_open = KEYS[1], KEYS[2], KEYS[3]
local organization_id, name, scopes, description, metadata, audit, limits = unpack(ARGV)

--@block now

local agent_organization, agent_revoked, agent_restricted, old_name, old_scopes, old_description, old_metadata =
  unpack(redis.call('HMGET', agent, 'organization', 'revoked', 'restricted', 'name', 'scopes', 'description', 'metadata'))
--@block refuse_unknown_agent
if agent_revoked then
  return {'agent_revoked'}
end

local function lacks(list, scope)
  return not string.find(' ' .. list .. ' ', ' ' .. scope .. ' ', 1, true)
end
local changed, narrowed = {}, false
if name ~= '' and string.sub(name, 2) ~= old_name then
  changed[#changed + 1] = 'name'
end
if description ~= '' and string.sub(description, 2) ~= (old_description or '') then
  changed[#changed + 1] = 'description'
end
if metadata ~= '' and string.sub(metadata, 2) ~= (old_metadata or '') then
  changed[#changed + 1] = 'metadata'
end
if scopes ~= '' and string.sub(scopes, 2) ~= (old_scopes or '') then
  changed[#changed + 1] = 'scopes'
  for scope in string.gmatch(old_scopes or '', '%S+') do
    narrowed = narrowed or lacks(string.sub(scopes, 2), scope)
  end
end

local what = table.concat(changed, ' ')
if what == 'scopes' then
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
end
for _, field in ipairs(changed) do
  local value = string.sub(({name = name, scopes = scopes, description = description, metadata = metadata})[field], 2)
  if value == '' and field ~= 'scopes' then
    redis.call('HDEL', agent, field)
  else
    redis.call('HSET', agent, field, value)
  end
end
if narrowed and not string.find(agent_restricted or '', 'n', 1, true) then
  restrict_agent(agent, agent_restricted, 'n')
end
limits = limits ~= '' and set_agent_limits(agent, agent_open, now, limits)
if limits then
  changed[#changed + 1] = 'limits'
  record(events, audit, now, 'agent.changed', 'changed', table.concat(changed, ' '), 'limits', limits)
  note_agent_day(agent, events, audit, now, redis.call('HGET', agent, 'restricted') or '')
elseif what ~= '' then
  record(events, audit, now, 'agent.changed', 'changed', what)
end
local open = string.format('%d', redis.call('ZCOUNT', agent_open, string.format('(%d', now), '+inf'))
local before = {old_name, old_scopes, old_description, old_metadata}
--@block agent_state
return {'ok', before, state, string.format('%d', now), open}
