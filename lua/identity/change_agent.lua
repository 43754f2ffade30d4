-- Changes an agent. Scopes that it no longer has are refused from now on, whatever its tokens and sessions say; those were
-- issued from the scopes that it had, so a flag makes scripts compare. A change to what the agent is already changes
-- nothing.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
-- KEYS[3] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = name             '=' and the name, '' to leave it; so are the others, '=' alone for none
-- ARGV[3] = scopes           separated by single spaces
-- ARGV[4] = description
-- ARGV[5] = metadata         JSON object
-- ARGV[6] = audit            see include/audit.lua
-- ARGV[7] = limits           as wanted in include/set_agent_limits.lua, '' to leave them
-- ARGV[8] = audiences        separated by single spaces, '=-' for none, '=' alone for any
-- ARGV[9] = jwks             JSON Web Key Set
-- ARGV[10] = jwks_uri
-- ARGV[11] = dpop_required   '=1' or '='
--
-- Arguments: each may be left as it is, so none follows from another.
--
-- Reply:  {'ok', before, agent, now, open}  as block/agent_state.lua reads it: name, scopes, description, metadata, audiences, jwks and
--                            jwks_uri before, and the agent after the change; now in ms since 1970; open counts sessions
--         {'unknown_agent'}
--         {'agent_revoked'}
-- Writes: HSET and HDEL agent, UNLINK agent_open and XADD events, if something changes
--@include audit
--@include agent_limit_notes
--@include restrict_agent
--@include set_agent_limits
--@include unrestrict_agent
local agent, events, agent_open = KEYS[1], KEYS[2], KEYS[3]
local organization_id, name, scopes, description, metadata, audit, limits, audiences, jwks, jwks_uri, dpop_required = unpack(ARGV)

--@block now

local agent_organization, agent_revoked, agent_restricted, old_name, old_scopes, old_description, old_metadata, old_audiences, old_jwks, old_jwks_uri, agent_keys_version =
  unpack(redis.call('HMGET', agent, 'organization', 'revoked', 'restricted', 'name', 'scopes', 'description', 'metadata',
    'audiences', 'jwks', 'jwks_uri', 'keys_version'))
--@block refuse_unknown_agent
if agent_revoked then
  return {'agent_revoked'}
end

local function lacks(list, scope)
  return not string.find(' ' .. list .. ' ', ' ' .. scope .. ' ', 1, true)
end
local changed, texts, narrowed, takes_away = {}, {}, false, true
local function change(field, wanted, old)
  local text = string.sub(wanted, 2)
  if wanted == '' or text == (old or '') then
    return false
  end
  changed[#changed + 1], texts[field] = field, text
  return true
end
for _, one in ipairs({{'name', name, old_name}, {'description', description, old_description}, {'metadata', metadata, old_metadata}}) do
  if change(one[1], one[2], one[3]) then
    takes_away = false
  end
end
if change('scopes', scopes, old_scopes) then
  for scope in string.gmatch(old_scopes or '', '%S+') do
    narrowed = narrowed or lacks(texts.scopes, scope)
  end
end
change('audiences', audiences, old_audiences)
change('jwks', jwks, old_jwks)
change('jwks_uri', jwks_uri, old_jwks_uri)
change('dpop_required', dpop_required, string.find(agent_restricted or '', 'p', 1, true) and '1')

local what = table.concat(changed, ' ')
if what ~= '' and takes_away then
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
end
for _, field in ipairs(changed) do
  if field == 'dpop_required' then
    agent_restricted = texts[field] ~= '' and restrict_tokens(agent, agent_restricted, 'p') or unrestrict_agent(agent, agent_restricted, 'p')
  elseif texts[field] == '' and field ~= 'scopes' then
    redis.call('HDEL', agent, field)
  else
    redis.call('HSET', agent, field, texts[field])
  end
end
if texts.jwks or texts.jwks_uri then
  redis.call('HSET', agent, 'keys_version', string.format('%d', (agent_keys_version or 0) + 1)) -- what the old ones verified is refused
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
local before = {old_name, old_scopes, old_description, old_metadata, old_audiences, old_jwks, old_jwks_uri}
--@block agent_state
return {'ok', before, state, string.format('%d', now), open}
