-- Counts what a session uses by action type. Its field t:<type> is '<index> <actions> <micro-USD>', the type as
-- include/one_line.lua writes it. The index is 1 to 64, in the order in which the session met its types, and tc how many
-- they are. What comes beyond them counts in 't:' with the index 0. What a session uses without a type is the rest of its totals.
-- A charge counts in p:<type> instead, which is one number: micro-USD x 1,000,000 + actions, as long as it is below 9 x 10^15 and
-- its actions are below 1,000,000. So a charge reads and writes no text with several numbers.
-- count_read_type adds to t:<type>, which the caller has read (counts, nil for none), and writes the fields of the session that follow.
-- It returns the type under which it counts, '' for those beyond 64; and about how many bytes a new one takes.
local function count_read_type(session, name, counts, n, v, ...)
  local numbers = '^(%d+) (%-?%d+) (%-?%d+)$'
  local index, type_n, type_v = string.match(counts or '', numbers)
  local grown = 0
  if not index and name ~= '' then
    local types = redis.call('HGET', session, 'tc') or 0
    if types + 0 < 64 then
      index, type_n, type_v, grown = types + 1, 0, 0, 2 * #name + 100
      redis.call('HSET', session, 'p:' .. name, '0', 'tc', string.format('%d', index)) -- in the order in which charges look for them
    else
      name = ''
      index, type_n, type_v = string.match(redis.call('HGET', session, 't:') or '', numbers)
    end
  end
  redis.call('HSET', session, 't:' .. name, string.format('%d %.0f %.0f', index or 0, (type_n or 0) + n, (type_v or 0) + v), ...)
  return name, grown
end

local function count_type(session, name, n, v)
  return count_read_type(session, name, redis.call('HGET', session, 't:' .. name), n, v)
end

-- Returns the actions and the micro-USD in the number of a field p:<type>.
local function counts_in(number)
  local n = number % 1000000
  return n, (number - n) / 1000000
end

-- Counts a charge that the number of its field p:<type> has no room for, or whose session has no such field yet: moves the
-- number to t:<type>. Returns about how many bytes a new type takes, nil for none.
local function count_anew(session, kind, count, value)
  local n, v = counts_in(redis.call('HGET', session, kind) or 0)
  local name, grown = count_type(session, string.sub(kind, 3), n + count, v + value)
  if name ~= '' then
    redis.call('HSET', session, kind, '0')
  end
  return grown > 0 and string.format('%d', grown) or nil
end
