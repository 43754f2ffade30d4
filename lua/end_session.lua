-- Ends an active session, which rolls its pending transactions back: the script releases what they hold, and their
-- status follows from this end (see transactionStatus). Its leases stay open until they are settled or expire. Ending again changes nothing and returns the first answer.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = holds            zset sh:{cell}:<session>
-- KEYS[4] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = retention        ms that the session stays readable from now
-- ARGV[5] = audit            see include/audit.lua
--
-- Reply:  {'ok', ended}                         ms since 1970
--         {'unknown_agent'}
--         {'invalid_token'}                     the access token's agent or family is revoked
--         {'unknown_session'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first
--         {'not_active', ended, revoked, x, now}  in ms since 1970, '' if it has not happened
-- Writes: HSET, HDEL and PEXPIRE session; XADD events, one for each of the first 100 transactions; UNLINK holds
--@include audit
--@include flags
local agent, session, holds, events = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, caller_family, retention, audit = unpack(ARGV)

--@block now
--@block either_caller

local a, x, e, h, hx, w, lv, gb = unpack(redis.call('HMGET', session, 'a', 'x', 'e', 'h', 'hx', 'w', 'lv', 'gb'))
--@block refuse_unknown_session
if e then
  return {'ok', e}
end
--@block refuse_holds_due hx=hx
local ended = string.format('%d', now)
if agent_revoked or now >= tonumber(x) then
  if not agent_revoked then
    redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
    note(session, events, audit, now, w or '', 'x', 'session.expired')
  end
  return {'not_active', '', agent_revoked or '', x, ended}
end

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
redis.call('PEXPIRE', session, retention)
if hx then
  for _, hold in ipairs(redis.call('ZRANGE', holds, 0, 99)) do
    record(events, audit, now, 'transaction.rolled_back', 'session', string.sub(session, -36),
      'transaction', string.sub(hold, 1, 16), 'released', string.sub(hold, 17))
  end
  redis.call('UNLINK', holds) -- however many they are
end
record(events, audit, now, 'session.ended', 'session', string.sub(session, -36), 'released', h or '0')
return {'ok', ended}
