-- Folds what a session has used since it was folded last into the day on which it counts: in the session, as long as that is
-- kept, and in its agent's usage, which outlasts it. So the sum of an agent's days is the sum of its sessions, and folding again
-- changes nothing.
-- A session's field named as its agent (16 bytes) is the end of the day on which its usage counts, in seconds since 1970; a session of
-- the version before has none. A charge that finds it knows both that the session is the agent's and which day it is. Its u:<day> is '<index> <actions> <micro-USD>' for each type that changed on that day, one behind the
-- other; the index t stands for all of them together. An agent's usage has the same under d:<day>, with indexes of its own:
-- n:<type> is the index of a type, from 1 to 256 in the order in which it met them, c how many they are, and those beyond
-- count as 0. o is the first of its days.
local function add_usage(text, changes)
  local sums, order = {}, {}
  local function add(index, n, v)
    local before = sums[index]
    if not before then
      before = {0, 0}
      order[#order + 1] = index
    end
    sums[index] = {before[1] + n, before[2] + v}
  end
  for index, n, v in string.gmatch(text, '(%w+) (%-?%d+) (%-?%d+)') do
    add(index, n, v)
  end
  for i, change in ipairs(changes) do
    add(change.index, change.n, change.v)
  end
  for i, index in ipairs(order) do
    order[i] = string.format('%s %.0f %.0f', index, sums[index][1], sums[index][2])
  end
  return table.concat(order, ' ')
end

-- Returns what is not folded yet, for each type that has some.
local function unfolded(session)
  local used, changes = {}, {}
  local totals = redis.call('HMGET', session, 'n', 'v', 'lv', 'dn', 'dv', 'kn', 'kv')
  local own_n, own_v = own_usage(totals)
  used.t = {index = 't', n = own_n, v = own_v}
  local fields = redis.call('HGETALL', session)
  for _, typed in pairs(used_by_type(fields)) do
    used[typed.index] = typed
  end
  for i = 1, #fields, 2 do
    if string.find(fields[i], '^u:%d+$') then
      for index, folded_n, folded_v in string.gmatch(fields[i + 1], '(%w+) (%-?%d+) (%-?%d+)') do
        used[index].n, used[index].v = used[index].n - folded_n, used[index].v - folded_v
      end
    end
  end
  for _, change in pairs(used) do
    if change.n ~= 0 or change.v ~= 0 then
      changes[#changes + 1] = change
    end
  end
  return changes
end

-- Returns the index of a type in an agent's usage.
local function type_index(usage, name)
  if name == '' then
    return '0'
  end
  local index = redis.call('HGET', usage, 'n:' .. name)
  if index then
    return index
  end
  local types = redis.call('HGET', usage, 'c') or 0
  if types + 0 >= 256 then
    return '0'
  end
  index = string.format('%d', types + 1)
  redis.call('HSET', usage, 'n:' .. name, index, 'c', index)
  return index
end

-- Counts changes on a day of an agent, and forgets the days before the first that is kept.
local function count_day(usage, day, first_kept, changes)
  if day < first_kept then
    return
  end
  for _, change in ipairs(changes) do
    if change.name then
      change.index = type_index(usage, change.name)
    end
  end
  local field = string.format('d:%d', day)
  local before = redis.call('HGET', usage, field)
  if not before then
    local oldest = math.min(redis.call('HGET', usage, 'o') or day, day)
    for gone = oldest, first_kept - 1 do
      redis.call('HDEL', usage, string.format('d:%d', gone))
    end
    redis.call('HSET', usage, 'o', string.format('%d', math.max(oldest, first_kept)))
  end
  redis.call('HSET', usage, field, add_usage(before or '', changes))
end

-- kept is how many days before this one are kept.
local function fold_usage(session, usage, now, agent_id, kept)
  local today, d = math.floor(now / 86400000), redis.call('HGET', session, agent_id)
  local day, changes = d and d / 86400 - 1 or today, unfolded(session)
  if #changes > 0 then
    local field = string.format('u:%d', day)
    redis.call('HSET', session, field, add_usage(redis.call('HGET', session, field) or '', changes))
    count_day(usage, day, today - kept, changes)
    redis.call('PEXPIRE', usage, string.format('%d', (kept + 1) * 86400000))
  end
  if not d or day < today then
    redis.call('HSET', session, agent_id, string.format('%d', (today + 1) * 86400))
  end
end
