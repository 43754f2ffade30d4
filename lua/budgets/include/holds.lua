-- Records that a session holds nothing. With max_committed (include/budget.lua) or restrictions
-- (include/restrict.lua) held_value stays, as 0. While it has open leases
-- (include/leases.lua) holds_due stays too: it is not after the expiry of the next.
local function hold_nothing(session, refunds, leased_value)
  if leased_value then
    redis.call('HSET', session, 'h', '0')
    return
  end
  redis.call('HDEL', session, 'h', 'hx')
  if refunds and string.find(refunds, ' ', 1, true) then
    redis.call('HSET', session, 'h', '0')
  end
end

-- Takes one hold, which its transaction is done with, from its session with this refunds and leased_value; returns what is held
-- after it.
-- A hold is a member of its zset by expiry: the transaction's 16 bytes and the value in micro-USD.
local function release_hold(session, holds, hold, held, refunds, leased_value)
  redis.call('ZREM', holds, hold)
  held = held - tonumber(string.sub(hold, 17))
  if redis.call('ZCARD', holds) == 0 then
    hold_nothing(session, refunds, leased_value)
  else
    redis.call('HSET', session, 'h', string.format('%d', held))
  end
  return held
end
