-- Counts what a session uses by action type. Its field t:<type> is '<index> <actions> <micro-USD> <day>', the type as
-- include/one_line.lua writes it. The index is 1 to 64, in the order in which the session met its types, and tc how many
-- they are. What comes beyond them counts in 't:' with the index 0. day is the session's d when the type was charged last: a charge
-- reads it here instead of d. What a session uses without a type is the rest of its totals.
-- count_type returns the type under which it counts, '' for those beyond 64; and about how many bytes a new one takes.
local function count_type(session, name, n, v)
  local function stored(kind)
    return string.match(redis.call('HGET', session, 't:' .. kind) or '', '^(%d+) (%-?%d+) (%-?%d+) ')
  end
  local index, type_n, type_v = stored(name)
  local grown = 0
  if not index and name ~= '' then
    local types = redis.call('HGET', session, 'tc') or 0
    if types + 0 < 64 then
      index, type_n, type_v, grown = types + 1, 0, 0, #name + 100
      redis.call('HSET', session, 'tc', string.format('%d', index))
    else
      name = ''
      index, type_n, type_v = stored(name)
    end
  end
  local day = redis.call('HGET', session, 'd') or 0
  redis.call('HSET', session, 't:' .. name, string.format('%d %d %d %d', index or 0, (type_n or 0) + n, (type_v or 0) + v, day))
  return name, grown
end
