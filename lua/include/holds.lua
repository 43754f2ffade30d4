-- Takes one hold, which its transaction is done with, from its session; returns what is held after it. A hold is a member of
-- its zset by expiry: the transaction's 16 bytes and the value in micro-USD.
local function release_hold(session, holds, hold, held)
  redis.call('ZREM', holds, hold)
  held = held - tonumber(string.sub(hold, 17))
  if redis.call('ZCARD', holds) == 0 then
    redis.call('HDEL', session, 'h', 'hx')
  else
    redis.call('HSET', session, 'h', string.format('%.0f', held))
  end
  return held
end
