-- Keeps what is due in an organization, by time: chunks of entries, so that an entry takes little more memory than its bytes. An entry
-- is what is to be looked at then, s a session, p the parts of a session or a the sessions of an agent, and the 16 bytes of its id. A
-- chunk begins with 0, or with 1 when it is full, and its score, so that no two of different times are one member. Its score is the end
-- of the two seconds in which its entries are due; when that has passed, it gets no more entries. The member b is the end of a budget's period (budgets/end_period.lua).
-- has_due returns where an entry stands in a chunk, nil for nowhere.
local function has_due(chunk, entry)
  local at = 0
  repeat
    at = string.find(chunk, entry, at + 1, true)
  until not at or at % 17 == 15
  return at
end

-- Adds entries, each with its time before it, in ms since 1970 and 13 digits. An entry that stands in the open chunk of its time is not
-- added again, so that a session with many holds takes no more than its time.
local function add_due(due, now, entries)
  local full, by_score = 239 * 17, {}
  for i = 1, #entries, 30 do
    local at, entry = math.max(string.sub(entries, i, i + 12) + 0, now), string.sub(entries, i + 13, i + 29)
    local score = string.format('%.0f', (math.floor(at / 2000) + 1) * 2000)
    by_score[score] = by_score[score] or {}
    by_score[score][entry] = true
  end
  for score, entries_then in pairs(by_score) do
    local chunk = redis.call('ZRANGEBYSCORE', due, score, score, 'LIMIT', 0, 1)[1]
    if not chunk or string.sub(chunk, 1, 1) ~= '0' then
      chunk = nil
    end
    local added = {chunk and string.sub(chunk, 15)}
    for entry in pairs(entries_then) do
      if not chunk or not has_due(chunk, entry) then
        added[#added + 1] = entry
      end
    end
    local all = table.concat(added)
    if chunk and #all > #chunk - 14 then
      redis.call('ZREM', due, chunk)
    end
    for from = 1, #all, full do
      local part = string.sub(all, from, from + full - 1)
      redis.call('ZADD', due, score, (#part == full and '1' or '0') .. score .. part)
    end
  end
end

-- Returns the first time at which something is due, nil for nothing.
local function first_due(due)
  return redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
end
