-- Counts a charge in the session, and under its action type in the field kind, whose number was read before as
-- type_number (include/action_types.lua). Sets type_grown to about how many bytes a new type takes.
local counts = (type_number or 0) + value * 1000000 + count
if type_number and counts < 9000000000000000 and type_number % 1000000 + count < 1000000 then
  redis.call('HSET', session, 'n', used_n, 'v', used_v, kind, string.format('%d', counts))
else
  --@include action_types
  redis.call('HSET', session, 'n', used_n, 'v', used_v)
  type_grown = count_anew(session, kind, type_number or 0, count, value)
end
