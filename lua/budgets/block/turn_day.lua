-- Begins a new day of an agent that counts by its limits (include/agent_limits.lua), if there is one: sets head, left and tat. A clock
-- that goes back over midnight does not empty a day. starts is when the day started, in ms since 1970.
-- Takes head, left, now, per_minute, tat. Sets head, left, starts, tat.
local starts = day * 86400000
if now >= starts + 86400000 then
  local today, limits = math.floor(now / 86400000), nil
  limits, left = string.match(head, '^(%a+ (%d*) %d* )')
  head = limits .. string.format('%d', today)
  if tat ~= '' then
    tat = math.max(tat - (today * 86400000 - starts) * per_minute, 0)
  end
  starts = today * 86400000
end
