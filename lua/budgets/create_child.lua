-- Creates the session of a part that was set aside for it. Once for an id: a creation that comes too late, or whose part has
-- been given back, creates nothing; one that comes again returns the session. In the agent's index its id leaves out the last
-- two bytes, which are the cell.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = agent_sessions   zset as:{cell}:<agent>
-- KEYS[4] = events           stream ev:{cell}:<agent>
-- KEYS[5] = agent_open       zset ao:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = session_id       16 bytes
-- ARGV[4] = max_actions
-- ARGV[5] = max_value        micro-USD
-- ARGV[6] = expires          ms since 1970
-- ARGV[7] = scopes           separated by single spaces; '' for all that agent and parent have, ' ' for none
-- ARGV[8] = metadata         JSON object, '' for none
-- ARGV[9] = max_committed    micro-USD, '' for none; '=' before it when a top-up is to raise it too
-- ARGV[10] = max_lease       s that a lease may last, '' for no leases
-- ARGV[11] = parent          its id as text, and 16 bytes of its agent
-- ARGV[12] = depth           2 for the child of a root
-- ARGV[13] = parent_scopes   separated by single spaces
-- ARGV[14] = deadline        ms since 1970 after which nothing is created
-- ARGV[15] = audit           see include/audit.lua
-- ARGV[16] = max_per_action  micro-USD, '' for none
-- ARGV[17] = enforcement     as create_session.lua
-- ARGV[18] = parent_version  of the parent's suspension when the part was set aside; the session follows later ones only
-- ARGV[19] = thresholds       '=' and percents, ascending, with single spaces between; '' for 80 and 100
--
-- Arguments: each is stored as a field of its own, or bounds one; packed into one they would be taken apart here.
--
-- Reply:  {'ok', session_id, created, expires, scopes, max_actions, max_value, again}  as create_session.lua; again '1' when
--                                   it existed, else ''
--         {'unknown_agent'}
--         {'agent_revoked'}
--         {'agent_suspended', since}        in ms since 1970
--         {'scope_not_held', scope}         the first scope that the agent does not have
--         {'given_up'}                      it came too late
--         {'agent_limit', limit, at}        max_open_sessions are open; at ''
-- Writes: HSET and PEXPIRE session; ZADD and PEXPIRE agent_sessions; ZADD, ZREM and PEXPIRE agent_open; HSET agent; XADD
-- events
--@include audit
--@include agent_limit_notes
--@include budget
--@include drawn_at
--@include parts
--@include thresholds
local agent, session, agent_sessions, events, agent_open = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local organization_id, agent_id, session_id, max_actions, max_value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local expires, scopes, metadata, max_committed, max_lease = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local parent, depth, parent_scopes, deadline, audit = ARGV[11], ARGV[12], ARGV[13], ARGV[14], ARGV[15]
local max_per_action, enforcement, parent_version, thresholds = ARGV[16], ARGV[17], ARGV[18], ARGV[19]
local follows = ''
if string.sub(max_committed, 1, 1) == '=' then
  max_committed, follows = string.sub(max_committed, 2), '1'
end

--@block now

--@read agent agent_organization agent_revoked agent_restricted agent_scopes max_open_sessions
--@block refuse_unknown_agent
--@read session session_agent session_created expires_at own_scopes closed_at
if session_agent then
  local made = string.format('%.0f', drawn_at(session_id, 1) + session_created)
  return {'ok', session_id, made, expires_at, own_scopes or '', max_actions, max_value, '1'}
end
if closed_at or now > tonumber(deadline) or now >= tonumber(expires) then
  return {'given_up'}
end
if agent_revoked then
  return {'agent_revoked'}
end
--@block refuse_suspended
--@block hold_scopes held=agent_scopes
--@block refuse_open_sessions
if scopes == '' then
  for scope in string.gmatch(agent_scopes, '%S+') do
    if string.find(' ' .. parent_scopes .. ' ', ' ' .. scope .. ' ', 1, true) then
      scopes = scopes == '' and scope or scopes .. ' ' .. scope
    end
  end
end
if scopes == '' then
  scopes = ' '
end

local created = string.format('%.0f', now)
local refunds, value_limit = write_budget('0', max_committed ~= '' and max_committed or no_max_committed, max_value)
local since_drawn = string.format('%.0f', now - drawn_at(session_id, 1))
local flags, watched = own_thresholds(thresholds)
local fields = {'n', 0, 'v', 0, agent_id, string.format('%d', (math.floor(now / 86400000) + 1) * 86400), 'ma', max_actions, 'mv',
  value_limit,
  'x', expires, 'c', since_drawn, 'a', agent_id, 'sc', scopes, -- in the order of create_session.lua
  'r', 'kb' .. (enforcement ~= '' and 'o' or '') .. (max_per_action ~= '' and 'p' or '') .. watched, 'h', 0, 'gb', refunds, 'pa',
    string.sub(parent, 1, 36),
  'pg', string.sub(parent, 37), 'dp', depth, 'pv', parent_version}
--@block optional_field field=md value=metadata
--@block optional_field field=mf value=follows
--@block optional_field field=ml value=max_lease
--@block optional_field field=mp value=max_per_action
--@block optional_field field=w value=flags
if enforcement ~= '' then
  fields[#fields + 1] = 'oc'
  fields[#fields + 1] = 0
end
local kept = expires - now
local ttl = string.format('%.0f', kept)
redis.call('HSET', session, unpack(fields))
redis.call('PEXPIRE', session, as_long_as_parts)
redis.call('ZADD', agent_sessions, 0, string.sub(session_id, 1, 14))
--@block extend_ttl key=agent_sessions
--@block enter_open_session
local limits = {'max_actions', max_actions, 'max_value', max_value, 'expires', expires}
if max_committed ~= '' then
  limits[#limits + 1] = 'max_committed'
  limits[#limits + 1] = max_committed
end
if max_lease ~= '' then
  limits[#limits + 1] = 'max_lease'
  limits[#limits + 1] = max_lease
end
if enforcement ~= '' then
  limits[#limits + 1] = 'enforcement'
  limits[#limits + 1] = enforcement
end
if max_per_action ~= '' then
  limits[#limits + 1] = 'max_per_action'
  limits[#limits + 1] = max_per_action
end
if thresholds ~= '' then
  limits[#limits + 1] = 'thresholds'
  limits[#limits + 1] = string.sub(thresholds, 2)
end
record(events, audit, now, 'session.created', 'session', string.sub(session, -36), unpack(limits))
return {'ok', session_id, created, expires, scopes, max_actions, max_value, ''}
