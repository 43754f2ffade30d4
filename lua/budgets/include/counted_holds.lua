-- Remembers which holds of a session count in the day of their agent, so that they are given back on the same day only: its
-- field hd:<transaction> is '<day> <micro-USD>' for each of them, and day_holds '<day> <sum>' for what its end gives back. A
-- session has day_holds once one of its holds has counted. Days as include/agent_limits.lua; day_holds is nil for none.
local function sum_holds(session, day_holds, day, by)
  local of, sum = string.match(day_holds or '0 0', '^(%d+) (%d+)$')
  if day < of + 0 then
    return day_holds
  elseif day > of + 0 then
    sum = 0
  end
  day_holds = string.format('%d %d', day, math.max(sum + by, 0))
  redis.call('HSET', session, 'hd', day_holds)
  return day_holds
end

-- Returns the day on which a hold counted last, and what of it counted then; nil and 0 for a hold that does not count.
local function counted_hold(session, transaction_id)
  local day, value = string.match(redis.call('HGET', session, 'hd:' .. transaction_id) or '', '^(%d+) (%d+)$')
  if not day then
    return nil, 0
  end
  return day + 0, value + 0
end

-- Counts a hold; returns day_holds after it.
local function count_hold(session, day_holds, transaction_id, day, value)
  redis.call('HSET', session, 'hd:' .. transaction_id, string.format('%d %d', day, value))
  return sum_holds(session, day_holds, day, value)
end

-- Forgets a hold that is settled or has expired; returns day_holds after it, and what of the hold counted on this day.
local function forget_hold(session, day_holds, transaction_id, day)
  local counted_day, value = counted_hold(session, transaction_id)
  if not counted_day then
    return day_holds, 0
  end
  redis.call('HDEL', session, 'hd:' .. transaction_id)
  day_holds = sum_holds(session, day_holds, counted_day, -value)
  if counted_day ~= day then
    value = 0
  end
  return day_holds, value
end
