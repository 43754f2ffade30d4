-- Ends a session now, and releases what its pending transactions hold. Its leases expire as before. What the holds counted in
-- the agent's day is given back on that day only.
-- Takes agent, agent_open, agent_restricted, audit, day_holds, ended, events, held_value, holds, holds_due, leased_value, now,
-- refunds, session. Sets counted, counted_day.
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', session, 'e', ended)
if leased_value then
  redis.call('HSET', session, 'h', '0') -- its leases expire as before
else
  redis.call('HDEL', session, 'h', 'hx')
  if refunds and string.find(refunds, ' ', 1, true) then
    redis.call('HSET', session, 'h', '0') -- as include/holds.lua does
  end
end
local day = day_holds and this_day(agent_restricted, now)
local counted_day, counted = string.match(day_holds or '', '^(%d+) (%d+)$')
if day and counted_day + 0 == day then -- an instance of the version before may have settled some of these holds
  redis.call('HSET', agent, 'restricted', book(agent_restricted, now, -math.min(counted, held_value or 0)))
end
if day_holds then
  redis.call('HDEL', session, 'hd')
end
if agent_restricted and string.find(agent_restricted, 'o', 1, true) then
  redis.call('ZREM', agent_open, string.sub(session, -36))
end
if holds_due then
  for _, hold in ipairs(redis.call('ZRANGE', holds, 0, 99)) do
    record(events, audit, now, 'transaction.rolled_back', 'session', string.sub(session, -36),
      'transaction', string.sub(hold, 1, 16), 'released', string.sub(hold, 17))
  end
  redis.call('UNLINK', holds) -- however many they are
end
record(events, audit, now, 'session.ended', 'session', string.sub(session, -36), 'released', held_value or '0')
