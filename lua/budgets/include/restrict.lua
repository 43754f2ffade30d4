-- Writes a session's flags r, which few sessions have: s it is suspended, p it has a limit per action, o it observes, O it
-- has observed and enforces again, c it has or had children, k another keeps its books, K it has
-- taken what this one used, b another keeps its actions too, as those of every child; t<percent>,<percent>. it has a threshold below 80 of its own
-- (include/flags.lua), and these are the next of max_actions and of the limit of value, 101 for none. A session with one always has h, so a charge reads r. What keeps h is max_committed in gb
-- (include/budget.lua), also in scripts of the version before: a session without one gets the highest there is.
-- restrict adds a flag that r does not have, unrestrict takes one away that it has. Both return r after it, nil for none.
local function restrict(session, r, flag, h, gb, mv)
  r = (r or '') .. flag
  if not gb or not string.find(gb, ' ', 1, true) then
    gb = (gb or '0') .. ' ' .. no_max_committed .. ' ' .. mv
  end
  redis.call('HSET', session, 'r', r, 'h', h or '0', 'gb', gb)
  return r
end

local function unrestrict(session, r, flag, hx, gb)
  r = string.gsub(r, flag, '') -- flag is a pattern
  if r ~= '' then
    redis.call('HSET', session, 'r', r)
    return r
  end
  redis.call('HDEL', session, 'r')
  local given_back = string.match(gb or '', '^(%d+) ' .. no_max_committed .. ' ')
  if not given_back then
    return
  end
  redis.call('HDEL', session, 'gb')
  if given_back ~= '0' then
    redis.call('HSET', session, 'gb', given_back)
  end
  if not hx then
    redis.call('HDEL', session, 'h') -- so that it costs what it cost before
  end
end
