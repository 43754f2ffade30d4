-- Takes a hold that would be spent (include/spent_holds.lua) from its session, because it is settled: its value no longer counts as
-- leased. Returns whether it was there, and leased_value after it, nil for none. spent_holds is their number before, see there.
local function settle_spent_hold(session, leases, member, value, leased_value, spent_holds)
  if redis.call('ZREM', leases, member) == 0 then
    return false, leased_value
  end
  local others = (spent_holds or 0) - 1
  leased_value = string.format('%d', math.max(leased_value - value, 0))
  if others > 0 then
    redis.call('HSET', session, 'lv', leased_value, 'lh', string.format('%d', others))
  elseif redis.call('ZCARD', leases) > 0 then
    redis.call('HSET', session, 'lv', leased_value)
    redis.call('HDEL', session, 'lh')
  else
    redis.call('HDEL', session, 'lv', 'lh')
    leased_value = nil
  end
  return true, leased_value
end
