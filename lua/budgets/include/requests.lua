-- Keeps a session's requests for more. Their hash has a record of each under its 16 bytes; p and d, the ids of the pending and of
-- the decided ones, oldest first; b, '<bytes> <most>', the memory of the records and the most that it ever was. A record is
-- '<status> <created> <actions> <value> <decided> <granted actions> <granted value> <bytes of reason> <reason><comment>': times in
-- ms since 1970, values in micro-USD, 0 for what a pending one does not have. Go reads it in requestrecord.go.
local function request_record(status, created, asked_n, asked_v, decided, granted_n, granted_v, reason, comment)
  return table.concat({status, created, asked_n, asked_v, decided, granted_n, granted_v, string.format('%d', #reason),
    reason .. comment}, ' ')
end

-- Counts memory that the records take more, or less; returns how much more they take now than they ever did, and b.
local function count_records(b, more)
  local bytes, most = string.match(b or '0 0', '^(%d+) (%d+)$')
  local after = bytes + more
  local grown = math.max(after - most, 0)
  return string.format('%d', grown), string.format('%d %d', after, most + grown)
end

-- Returns ids of 16 bytes each without one of them.
local function without_id(ids, id)
  for at = 1, #ids, 16 do
    if string.sub(ids, at, at + 15) == id then
      return string.sub(ids, 1, at - 1) .. string.sub(ids, at + 16)
    end
  end
  return ids
end

-- Stores the record of a request that is decided now instead of the one found, and forgets the oldest decided one beyond 32;
-- returns what count_records returns first.
local function keep_decided(requests, request_id, p, d, b, found, decided_record)
  local decided_ids, more, oldest = (d or '') .. request_id, #decided_record - #found, nil
  if #decided_ids > 32 * 16 then
    oldest, decided_ids = string.sub(decided_ids, 1, 16), string.sub(decided_ids, 17)
    more = more - #(redis.call('HGET', requests, oldest) or '') - 120
  end
  local grown, counted = count_records(b, more)
  redis.call('HSET', requests, request_id, decided_record, 'p', without_id(p, request_id), 'd', decided_ids, 'b', counted)
  if oldest then
    redis.call('HDEL', requests, oldest)
  end
  return grown
end
