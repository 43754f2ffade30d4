-- Adds what an instance has created and freed to an organization's usage, and returns the usage and the quotas. What
-- expires is counted in buckets by the time of expiry, so it leaves the sum by itself. A bucket's field is
-- '<class><width>:<number>': one letter, minutes, and which interval of that width since 1970. A bucket never falls
-- below 0.
--
-- KEYS[1] = organization   hash o:{cell}:<organization>
-- KEYS[2] = usage          hash oq:{cell}:<organization>
-- KEYS[3] = agents         zset oa:{cell}:<organization>
-- KEYS[4] = open_sessions  zset oo:{cell}:<organization>
-- KEYS[5] = head           hash oeh:{cell}:<organization>, of its feed
--
-- ARGV[1] = agent_bytes    to add: the text of new agents
-- ARGV[2] = event_bytes    to add: new events
-- ARGV[3] = event_cap      bytes that the events of one agent take at the most
-- ARGV[4] = changes        '<class> <width> <remaining> <amount>' in lines: remaining in ms until it expires. Classes: b bytes,
--                          f refresh families, i idempotency keys, t pending transactions; of these remaining is
--                          the time of expiry, in ms since 1970, as Redis returned it, so that what is taken off
--                          comes from the bucket to which it was added
--
-- Reply:  {'ok', agents, open_sessions, pending, families, keys, bytes, quotas}  bytes with the feed's and
--                                   those of include/count_bytes.lua, without agents' fixed size;
--                                   quotas an array of names and values, of those that the operator has set
--         {'unknown_organization'}
-- Writes: HSET and HDEL usage, if something changes
local organization, usage, agents, open_sessions, head = unpack(KEYS)
local agent_bytes, event_bytes, event_cap, changes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

--@block now

local name, counted_bytes = unpack(redis.call('HMGET', organization, 'name', 'bytes'))
if not name then
  return {'unknown_organization'}
end

local stored = redis.call('HGETALL', usage)
local buckets, fixed, quotas, gone, written = {}, {}, {}, {}, {}
for i = 1, #stored, 2 do
  local class, width, number = string.match(stored[i], '^(%a)(%d+):(%d+)$')
  if class and (number + 1) * width * 60000 <= now then
    gone[#gone + 1] = stored[i]
  elseif class then
    buckets[stored[i]] = tonumber(stored[i + 1])
  elseif string.sub(stored[i], 1, 2) == 'q:' then
    quotas[#quotas + 1] = string.sub(stored[i], 3)
    quotas[#quotas + 1] = stored[i + 1]
  else
    fixed[stored[i]] = tonumber(stored[i + 1])
  end
end

local changed = {}
for class, width, remaining, amount in string.gmatch(changes, '(%a) (%d+) (%d+) (%-?%d+)\n') do
  local expires = class == 't' and tonumber(remaining) or now + remaining
  local bucket = class .. width .. ':' .. string.format('%.0f', math.floor(expires / (width * 60000)))
  buckets[bucket] = math.max((buckets[bucket] or 0) + amount, 0)
  changed[bucket] = true
end
for bucket in pairs(changed) do
  written[#written + 1] = bucket
  written[#written + 1] = string.format('%.0f', buckets[bucket])
end

-- A deletion of agents need not know what they held: the rest is taken to hold as much on average.
local known, count = fixed['agents'] or 0, redis.call('ZCARD', agents)
local kept = count < known and count / known or 1
local texts = math.floor((fixed['texts'] or 0) * kept) + agent_bytes
local events = math.min(math.floor((fixed['events'] or 0) * kept) + event_bytes, count * event_cap)
for name, value in pairs({agents = count, texts = texts, events = events}) do
  if value ~= (fixed[name] or 0) then
    written[#written + 1] = name
    written[#written + 1] = string.format('%.0f', value)
  end
end

local sums = {b = texts + events + (redis.call('HGET', head, 'b') or 0) + (counted_bytes or 0), f = 0, i = 0, t = 0}
for bucket, amount in pairs(buckets) do
  local class = string.sub(bucket, 1, 1)
  sums[class] = (sums[class] or 0) + amount
end

if #written > 0 then
  redis.call('HDEL', usage, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', usage, unpack(written))
end
if #gone > 0 then
  redis.call('HDEL', usage, unpack(gone))
end
local pending, families = string.format('%.0f', sums.t), string.format('%.0f', sums.f)
local keys, bytes = string.format('%.0f', sums.i), string.format('%.0f', sums.b)
local open = string.format('%.0f', redis.call('ZCARD', open_sessions))
return {'ok', string.format('%.0f', count), open, pending, families, keys, bytes, quotas}
