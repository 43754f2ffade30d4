-- Writes a session's restrictions, flags that few sessions have: s it is suspended, p it has a limit per action, o it observes,
-- O it has observed and enforces again, c it has or had children, k another takes its usage, K it has taken that,
-- b another takes its actions too, as those of every child; t<percent>,<percent>. it has a threshold below 80 of its own
-- (include/flags.lua), and these are the next of max_actions and of the limit of value, 101 for none. A session with one always
-- has held_value, so a charge reads restrictions. max_committed in refunds keeps it (include/budget.lua): a session without one
-- gets the highest there is. restrict adds a flag, unrestrict takes one away. Both return restrictions after it, nil for none.
local function restrict(session, restrictions, flag, held_value, refunds, value_limit)
  restrictions = (restrictions or '') .. flag
  if not refunds or not string.find(refunds, ' ', 1, true) then
    refunds = (refunds or '0') .. ' ' .. no_max_committed .. ' ' .. value_limit
  end
  redis.call('HSET', session, 'r', restrictions, 'h', held_value or '0', 'gb', refunds)
  return restrictions
end

local function unrestrict(session, restrictions, flag, holds_due, refunds)
  restrictions = string.gsub(restrictions, flag, '') -- flag is a pattern
  if restrictions ~= '' then
    redis.call('HSET', session, 'r', restrictions)
    return restrictions
  end
  redis.call('HDEL', session, 'r')
  local given_back = string.match(refunds or '', '^(%d+) ' .. no_max_committed .. ' ')
  if not given_back then
    return
  end
  redis.call('HDEL', session, 'gb')
  if given_back ~= '0' then
    redis.call('HSET', session, 'gb', given_back)
  end
  if not holds_due then
    redis.call('HDEL', session, 'h') -- so that it costs what it cost before
  end
end
