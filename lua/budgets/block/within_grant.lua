-- Refuses limits and an expiry beyond what the session or the budget above grants (ARGV granted of change_limits.lua), of a session
-- whose usage it takes, and ties one to it that had none. Sets r, refunds and what block/new_limits.lua read of them. lifetime is
-- '' to leave
-- the expiry.
-- Takes actions_limit, expires_at, given_back, granted, held_value, lifetime, max_actions, max_committed, max_value, now,
-- old_max_value, refunds, restrictions, session, times_shortened, used_value, value_limit. Sets given_back, kept_above,
-- max_committed, old_max_value, refunds, restrictions.
if granted == '-' then -- nothing else refuses the change
  return {'stale'}
end
local kept_above = restrictions and string.find(restrictions, 'k', 1, true)
if kept_above then -- see lua/budgets/README.md
  local granted_n, granted_v, granted_x, shortened = string.match(granted, '^(%d+) (%d+) (%d+) (%d+)')
  local over = max_actions ~= '' and tonumber(max_actions) > tonumber(granted_n or actions_limit)
  over = over or max_value ~= '' and tonumber(max_value) > tonumber(granted_v or old_max_value)
  over = over or lifetime ~= '' and shortened and shortened ~= (times_shortened or '0')
  if over then
    return {'stale'}
  end
  if lifetime ~= '' and now + lifetime > tonumber(granted_x or expires_at) then
    return {'beyond_parent'}
  end
elseif granted ~= '' then
  -- A session may have observed beyond its limits. That is to be reserved too.
  if used_value + held_value > tonumber(string.match(granted, '^%d+ (%d+)')) then
    return {'stale'}
  end
  restrictions = restrict(session, restrictions, 'k', held_value, refunds, value_limit)
  redis.call('PEXPIRE', session, as_long_as_parts)
  refunds = redis.call('HGET', session, 'gb')
  given_back, max_committed, old_max_value = read_budget(refunds, value_limit)
end
