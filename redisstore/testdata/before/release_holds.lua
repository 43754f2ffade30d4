-- Releases holds of a session whose time is up, at most 500 in a call. Every other script that reads a session answers
-- holds_due while some are due, and runs again after this one. So none of them needs a key that most sessions never
-- have, which would fail it while its slot moves.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = holds            zset sh:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
-- Writes: ZREM holds, HSET and HDEL session, XADD events
-- Appends to an agent's audit trail: what happened, when, by whom and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key' or 'agent'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%a+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%.0f', now), 'actor', actor,
    'request', request, ...)
end
-- Records that a session holds nothing. With max_committed (include/budget.lua) h stays, as 0.
local function hold_nothing(session, gb)
  redis.call('HDEL', session, 'h', 'hx')
  if gb and string.find(gb, ' ', 1, true) then
    redis.call('HSET', session, 'h', '0')
  end
end

-- Takes one hold, which its transaction is done with, from its session with this gb; returns what is held after it. A hold
-- is a member of its zset by expiry: the transaction's 16 bytes and the value in micro-USD.
local function release_hold(session, holds, hold, held, gb)
  redis.call('ZREM', holds, hold)
  held = held - tonumber(string.sub(hold, 17))
  if redis.call('ZCARD', holds) == 0 then
    hold_nothing(session, gb)
  else
    redis.call('HSET', session, 'h', string.format('%.0f', held))
  end
  return held
end
local session, holds, events, agent = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local audit = ARGV[1]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if redis.call('EXISTS', agent) == 0 then
  return {'ok'} -- its agent was deleted meanwhile: an event would begin an audit trail that nothing ends
end
local h, gb = unpack(redis.call('HMGET', session, 'h', 'gb'))
local held = tonumber(h or 0)
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', holds, '-inf', string.format('%.0f', now), 'LIMIT', 0, 500)) do
  local value = string.sub(hold, 17)
  held = held - tonumber(value)
  redis.call('ZREM', holds, hold)
  record(events, audit, now, 'transaction.expired', 'session', string.sub(session, -36),
    'transaction', string.sub(hold, 1, 16), 'released', value)
end

local next_due = redis.call('ZRANGE', holds, 0, 0, 'WITHSCORES')[2]
if next_due then
  redis.call('HSET', session, 'h', string.format('%.0f', held), 'hx', string.format('%.0f', tonumber(next_due)))
else
  hold_nothing(session, gb)
end
return {'ok'}
