-- Keeps what is due in an organization, by time: chunks of entries, so that an entry takes little more memory than its bytes. An entry
-- is what is to be looked at then, s a session, p the parts of a session or a the sessions of an agent, and the 16 bytes of its id. A
-- chunk begins with 0, or with 1 when it is full; its score is the end of the two seconds in which its entries are due. A chunk whose
-- score has passed gets no more entries. The member b is the end of a budget's period (budgets/end_period.lua).
-- add_due adds entries, each with its time before it, in ms since 1970 and 13 digits.
local function add_due(due, now, entries)
  local full, by_score = 239 * 17, {}
  for i = 1, #entries, 30 do
    local at = math.max(string.sub(entries, i, i + 12) + 0, now)
    local score = string.format('%.0f', (math.floor(at / 2000) + 1) * 2000)
    local added = by_score[score] or {}
    added[#added + 1] = string.sub(entries, i + 13, i + 29)
    by_score[score] = added
  end
  for score, added in pairs(by_score) do
    local chunk = redis.call('ZRANGEBYSCORE', due, score, score, 'LIMIT', 0, 1)[1]
    if chunk and string.sub(chunk, 1, 1) == '0' then
      redis.call('ZREM', due, chunk)
      table.insert(added, 1, string.sub(chunk, 2))
    end
    local all = table.concat(added)
    for from = 1, #all, full do
      local part = string.sub(all, from, from + full - 1)
      redis.call('ZADD', due, score, (#part == full and '1' or '0') .. part)
    end
  end
end

-- Returns the first time at which something is due, nil for nothing.
local function first_due(due)
  return redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
end
