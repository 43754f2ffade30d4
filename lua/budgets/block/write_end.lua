-- Ends a session now, and releases what its pending transactions hold. Its leases expire as before. What the holds counted in
-- the agent's day is given back on that day only.
redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', session, 'e', ended)
if lv then
  redis.call('HSET', session, 'h', '0') -- its leases expire as before
else
  redis.call('HDEL', session, 'h', 'hx')
  if gb and string.find(gb, ' ', 1, true) then
    redis.call('HSET', session, 'h', '0') -- as include/holds.lua does
  end
end
local day = hd and this_day(agent_restricted, now)
local counted_day, counted = string.match(hd or '', '^(%d+) (%d+)$')
if day and counted_day + 0 == day then -- an instance of the version before may have settled some of these holds
  redis.call('HSET', agent, 'restricted', book(agent_restricted, now, -math.min(counted, h or 0)))
end
if hd then
  redis.call('HDEL', session, 'hd')
end
if agent_restricted and string.find(agent_restricted, 'o', 1, true) then
  redis.call('ZREM', agent_open, string.sub(session, -36))
end
if hx then
  for _, hold in ipairs(redis.call('ZRANGE', holds, 0, 99)) do
    record(events, audit, now, 'transaction.rolled_back', 'session', string.sub(session, -36),
      'transaction', string.sub(hold, 1, 16), 'released', string.sub(hold, 17))
  end
  redis.call('UNLINK', holds) -- however many they are
end
record(events, audit, now, 'session.ended', 'session', string.sub(session, -36), 'released', h or '0')
