-- Takes a hold that would be spent (include/spent_holds.lua) from its session, because it is settled: its value no longer counts as
-- leased. Returns leased_value after it, nil for none.
local function settle_spent_hold(session, leases, member, value, leased_value)
  redis.call('ZREM', leases, member)
  count_spent_holds(session, -1)
  if redis.call('ZCARD', leases) == 0 then
    redis.call('HDEL', session, 'lv')
    return nil
  end
  leased_value = string.format('%d', math.max(leased_value - value, 0))
  redis.call('HSET', session, 'lv', leased_value)
  return leased_value
end
