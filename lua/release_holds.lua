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
--@include audit
--@include holds
local session, holds, events, agent = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local audit = ARGV[1]

--@block now

if redis.call('EXISTS', agent) == 0 then
  return {'ok'} -- its agent was deleted meanwhile: an event would begin an audit trail that nothing ends
end
local h, gb = unpack(redis.call('HMGET', session, 'h', 'gb'))
local held = tonumber(h or 0)
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', holds, '-inf', string.format('%d', now), 'LIMIT', 0, 500)) do
  local value = string.sub(hold, 17)
  held = held - tonumber(value)
  redis.call('ZREM', holds, hold)
  record(events, audit, now, 'transaction.expired', 'session', string.sub(session, -36),
    'transaction', string.sub(hold, 1, 16), 'released', value)
end

local next_due = redis.call('ZRANGE', holds, 0, 0, 'WITHSCORES')[2]
if next_due then
  redis.call('HSET', session, 'h', string.format('%d', held), 'hx', string.format('%d', tonumber(next_due)))
else
  hold_nothing(session, gb)
end
return {'ok'}
