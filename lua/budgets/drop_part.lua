-- Drops a child's part whose usage is taken, and lists the child among the closed ones. When it was the last and no parent takes
-- the session's own usage, the session's time to live starts.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = parts            hash sp:{cell}:<session>
-- KEYS[3] = looks            zset sc:{cell}:<session>
-- KEYS[4] = closed           zset sd:{cell}:<session>
-- KEYS[5] = session_transactions  zset stx:{cell}:<session>
--
-- ARGV[1] = child_id         16 bytes
-- ARGV[2] = retention        ms that the session stays readable after its end
--
-- Reply:  {'ok', last}  last '1' when the session is over, has no part left, and may close itself; else ''
-- Writes: HDEL parts; ZREM looks; ZADD, ZREM and PEXPIRE closed; PEXPIRE session
--@include parts
local session, parts, looks, closed, session_transactions = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local child_id, retention = ARGV[1], ARGV[2]

--@block now

local part = redis.call('HGET', parts, child_id)
if part and not read_part(part) then
  redis.call('HDEL', parts, '') -- goes on when Redis is full, see lua.go
  redis.call('HDEL', parts, child_id)
  redis.call('ZREM', looks, child_id)
  redis.call('ZADD', closed, string.format('%.0f', now), child_id)
  local oldest = redis.call('ZRANGE', closed, 0, -1001)
  if #oldest > 0 then
    redis.call('ZREM', closed, unpack(oldest))
  end
  redis.call('PEXPIRE', closed, as_long_as_parts)
end
--@read session session_agent ended_at expires_at restrictions leased_value
if not session_agent or redis.call('EXISTS', looks) == 1 then
  return {'ok', ''}
end
if string.find(restrictions or '', 'k', 1, true) then
  return {'ok', '1'}
elseif string.find(restrictions or '', 'K', 1, true) then
  return {'ok', ''} -- its time to live runs
end
local kept = retention + 0
if not ended_at or leased_value then -- its transactions may be pending for longer than it lasts
  kept = math.max(math.max(expires_at - now, 0) + retention, redis.call('PTTL', session_transactions))
end
local ttl = string.format('%.0f', kept)
redis.call('PEXPIRE', session, ttl)
redis.call('PEXPIRE', closed, ttl)
return {'ok', ''}
