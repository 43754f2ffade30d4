-- Takes a hold that would be spent (include/spent_holds.lua) from its session, because it is settled: its value no longer counts as
-- leased. spent_holds is the session's, before it. Returns whether the hold was there; and names and values of fields, which the caller
-- writes into the session with its own.
local function settle_spent_hold(session, leases, member, value, leased_value, spent_holds)
  if redis.call('ZREM', leases, member) == 0 then
    return false, {}
  end
  leased_value = string.format('%d', math.max(leased_value - value, 0))
  if (spent_holds or 0) + 0 > 1 then
    return true, {'lv', leased_value, 'lh', string.format('%d', spent_holds - 1)}
  elseif redis.call('ZCARD', leases) > 0 then
    redis.call('HDEL', session, 'lh')
    return true, {'lv', leased_value}
  end
  redis.call('HDEL', session, 'lv', 'lh')
  return true, {}
end
