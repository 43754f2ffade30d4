-- Ends a session now, and releases what its pending transactions hold. Its leases expire as before.
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
if hx then
  for _, hold in ipairs(redis.call('ZRANGE', holds, 0, 99)) do
    record(events, audit, now, 'transaction.rolled_back', 'session', string.sub(session, -36),
      'transaction', string.sub(hold, 1, 16), 'released', string.sub(hold, 17))
  end
  redis.call('UNLINK', holds) -- however many they are
end
record(events, audit, now, 'session.ended', 'session', string.sub(session, -36), 'released', h or '0')
