-- Moves every time that is stored of an agent's sessions, transactions and leases back, as if so much had passed since.
--
-- KEYS[1] = agent_sessions      zset as:{cell}:<agent>
-- KEYS[2] = agent_transactions  zset at:{cell}:<agent>
--
-- ARGV[1] = passed              ms
-- ARGV[2] = session             what the keys of sessions, of their holds and of transactions begin with
-- ARGV[3] = holds
-- ARGV[4] = transaction
-- ARGV[5] = leases              what the keys of open leases begin with
-- ARGV[6] = lease               what the keys of leases begin with; and what follows it: the keys of leases that may be closed
local agent_sessions, agent_transactions = KEYS[1], KEYS[2]
local passed, session, holds, transaction, leases, lease = unpack(ARGV)

local cell = string.match(agent_sessions, '{(%x+)}')

local function text(member)
  local hex = string.gsub(member, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
  return string.gsub(hex, '^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)', '%1-%2-%3-%4-') .. cell
end

local function move(key, fields)
  local moved = {}
  for i, value in ipairs(redis.call('HMGET', key, unpack(fields))) do
    if value then
      moved[#moved + 1] = fields[i]
      moved[#moved + 1] = string.format('%.0f', value - passed)
    end
  end
  if #moved > 0 then
    redis.call('HSET', key, unpack(moved))
  end
end

-- A client may not know yet what it was granted.
local granted = {}
for i = 7, #ARGV do
  granted[ARGV[i]] = true
end
for _, member in ipairs(redis.call('ZRANGE', agent_sessions, 0, -1)) do
  for _, open in ipairs(redis.call('ZRANGE', leases .. text(member), 0, -1)) do
    granted[lease .. text(string.sub(open, 1, 14))] = true
  end
  move(session .. text(member), {'x', 'hx', 'e', 'c', 'su'})
  for _, due in ipairs({holds .. text(member), leases .. text(member)}) do
    local open = redis.call('ZRANGE', due, 0, -1, 'WITHSCORES')
    for i = 1, #open, 2 do
      redis.call('ZADD', due, string.format('%.0f', open[i + 1] - passed), open[i])
    end
  end
end
for _, member in ipairs(redis.call('ZRANGE', agent_transactions, 0, -1)) do
  move(transaction .. text(member), {'x', 'b', 'cm', 'rb'})
end
for key in pairs(granted) do
  move(key, {'x', 'b', 'at', 'rx'})
end
return {'ok'}
