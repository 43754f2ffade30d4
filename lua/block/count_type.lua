-- Counts a charge under its action type (include/action_types.lua), whose text was read with the session: sets type_text, and
-- kind to the field that takes it; and for a new type type_grown, about how many bytes it takes.
if not type_index then
  local types = redis.call('HGET', session, 'tc') or 0
  if types + 0 < 64 then
    type_index, type_n, type_v, type_grown = types + 1, 0, 0, string.format('%d', #kind + 100)
    redis.call('HSET', session, 'tc', string.format('%d', type_index))
  else
    kind = 't:'
    type_index, type_n, type_v = string.match(redis.call('HGET', session, kind) or '0 0 0 ', '^(%d+) (%-?%d+) (%-?%d+) ')
  end
end
local type_text = string.format('%d %d %d %d', type_index, type_n + count, type_v + value, d)
