-- Records what time has brought to a session. It releases holds whose time is up, at most 500 in a call, and ends leases whose time is
-- up: they are spent in full. What such a hold counted in the agent's day is given back on that day only. Then it folds the
-- usage of a day that is over (include/fold_usage.lua), and notes that the session has expired. Every other script that reads a session
-- answers holds_due while some are due or the day is over, and runs again after this one. So few of them need a key that most sessions
-- never have, which would fail them while its slot moves.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = holds            zset sh:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = agent            hash a:{cell}:<agent>
-- KEYS[5] = leases           zset sl:{cell}:<session>
-- KEYS[6] = agent_holds      zset ah:{cell}:<agent>
-- KEYS[7] = usage            hash uy:{cell}:<agent>
--
-- ARGV[1] = audit            see include/audit.lua
-- ARGV[2] = kept             days before this one of which an agent's usage is kept
-- ARGV[3] = agent_id         16 bytes
--
-- Reply:  {'ok', expired, released, again}  how many leases expired, and how many holds were released; again when to look at the session
--                            again, in ms since 1970: at the next hold or lease, its expiry, or its closing; '' for never
-- Writes: ZREM holds and leases, ZADD and ZREM agent_holds, HSET and HDEL session, HSET agent, XADD events; HSET, HDEL and
-- PEXPIRE usage
--@include action_types
--@include audit
--@include agent_day
--@include counted_holds
--@include flags
--@include holds
--@include session_usage
--@include settles_late
--@include spent_holds
--@include fold_usage
local session, holds, events, agent, leases, agent_holds, usage = unpack(KEYS)
local audit, kept, agent_id = ARGV[1], ARGV[2], ARGV[3]

--@block now

if redis.call('EXISTS', agent, session) < 2 then
  redis.call('ZREM', agent_holds, string.sub(session, -36))
  return {'ok', '0', '0', ''} -- one of them ended meanwhile: an audit trail or a session that begins here would never end
end
--@read session held_value refunds leased_value day_holds ended_at session_agent expires_at noted_flags restrictions closed_at
--@  unsettled_at day_end=agent_id
local agent_restricted = day_holds and redis.call('HGET', agent, 'restricted')
local day, given_back, counted = this_day(agent_restricted or '', now), 0, 0
local held, released = tonumber(held_value or 0), 0
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', holds, '-inf', string.format('%d', now), 'LIMIT', 0, 500)) do
  local value = string.sub(hold, 17)
  held, released = held - tonumber(value), released + 1
  redis.call('ZREM', holds, hold)
  record(events, by_time(audit), now, 'transaction.expired', 'session', string.sub(session, -36),
    'transaction', string.sub(hold, 1, 16), 'released', value)
  if day_holds then
    day_holds, counted = forget_hold(session, day_holds, string.sub(hold, 1, 16), day)
    given_back = given_back + counted
  end
end
if day and given_back > 0 then
  redis.call('HSET', agent, 'restricted', book(agent_restricted, now, -given_back))
end

local expired, leased = 0, tonumber(leased_value or 0)
local spent = 0
local due_leases = leased_value and redis.call('ZRANGEBYSCORE', leases, '-inf', string.format('%d', now), 'LIMIT', 0, 500) or {}
for _, lease in ipairs(due_leases) do
  local used_actions, used_value, type_name = read_lease(lease)
  leased = math.max(leased - used_value, 0)
  redis.call('ZREM', leases, lease)
  if type_name then
    spent = spent + 1
    count_type(session, type_name, 0, used_value)
    record(events, by_time(audit), now, 'transaction.committed', 'session', string.sub(session, -36),
      'transaction', string.sub(lease, 1, 16), 'charged', used_value, 'settled_by', 'expiry')
  else
    expired = expired + 1
    record(events, by_time(audit), now, 'lease.expired', 'session', string.sub(session, -36), 'lease', string.sub(lease, 1, 16),
      'actions', used_actions, 'charged', used_value)
  end
end
if spent > 0 then
  count_spent_holds(session, -spent)
end

local next_hold = redis.call('ZRANGE', holds, 0, 0, 'WITHSCORES')[2]
if day_holds and next_hold then
  redis.call('ZADD', agent_holds, next_hold, string.sub(session, -36))
elseif day_holds
  or ended_at then -- the end of a session removes day_holds; an entry that stays due would stop the agent's other sessions
  redis.call('ZREM', agent_holds, string.sub(session, -36))
end
local next_lease = leased_value and redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')[2]
if not next_lease and leased_value then
  redis.call('HDEL', session, 'lv')
elseif expired + spent > 0 then
  redis.call('HSET', session, 'lv', string.format('%d', leased))
end
if next_hold or next_lease then
  local due = math.min(tonumber(next_hold or math.huge), tonumber(next_lease or math.huge))
  redis.call('HSET', session, 'h', string.format('%d', held), 'hx', string.format('%d', due))
else
  hold_nothing(session, refunds)
end
if session_agent and (not day_end or time[1] >= day_end) then
  fold_usage(session, usage, now, agent_id, kept)
end

local has_expired = not ended_at and now >= expires_at + 0 and not redis.call('HGET', agent, 'revoked')
if has_expired then
  note_expired(session, events, audit, now, noted_flags or '')
end
-- Above a session its usage is taken once. So one that ends within this time of an unsettled hold or lease waits for a late settlement.
local kept_above, again = string.find(restrictions or '', 'k', 1, true), ''
if kept_above and expired + spent + released > 0 then
  unsettled_at = now
  redis.call('HSET', session, 'xu', string.format('%.0f', now))
end
local next_look = math.min(tonumber(next_hold or math.huge), tonumber(next_lease or math.huge))
if not ended_at and now < expires_at + 0 then
  next_look = math.min(next_look, expires_at + 0)
end
if kept_above and not closed_at and unsettled_at then
  next_look = math.min(next_look, unsettled_at + settles_late)
end
if next_look < math.huge then
  again = string.format('%.0f', next_look)
end
-- An end that is not before the expiry stands for an expiry. What is recorded unasked lasts so when Redis's clock goes back.
if string.find(audit, ' time ', 1, true) and has_expired and not kept_above and not next_hold and not next_lease then
  redis.call('HSET', session, 'e', string.format('%.0f', now))
end
return {'ok', string.format('%d', expired), string.format('%d', released), again}
