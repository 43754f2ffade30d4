-- Refuses limits and an expiry beyond what the session or the budget above grants (ARGV granted of change_limits.lua), of a session
-- whose books it keeps, and ties one to it that had none. Sets r, gb and what block/new_limits.lua read of them. lifetime is '' to leave
-- the expiry.
if granted == '-' then -- nothing else refuses the change
  return {'stale'}
end
local kept_above = r and string.find(r, 'k', 1, true)
if kept_above then -- see docs/budgets.md
  local granted_n, granted_v, granted_x, shortened = string.match(granted, '^(%d+) (%d+) (%d+) (%d+)')
  local over = max_actions ~= '' and tonumber(max_actions) > tonumber(granted_n or ma)
  over = over or max_value ~= '' and tonumber(max_value) > tonumber(granted_v or old_max_value)
  over = over or lifetime ~= '' and shortened and shortened ~= (sh or '0')
  if over then
    return {'stale'}
  end
  if lifetime ~= '' and now + lifetime > tonumber(granted_x or x) then
    return {'beyond_parent'}
  end
elseif granted ~= '' then
  if v + h > tonumber(string.match(granted, '^%d+ (%d+)')) then -- it has observed beyond its limits, and that is to be reserved too
    return {'stale'}
  end
  r = restrict(session, r, 'k', h, gb, mv)
  redis.call('PEXPIRE', session, as_long_as_parts)
  gb = redis.call('HGET', session, 'gb')
  given_back, max_committed, old_max_value = read_budget(gb, mv)
end
