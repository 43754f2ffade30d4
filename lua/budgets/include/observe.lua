-- Lets a session that observes (o in its restrictions, include/restrict.lua) go beyond its limits. What a limit would have refused
-- is done, counted in the field observed_refusals, and noted in the audit trail the first time for each limit. observes returns
-- whether n actions and v micro-USD, used and held, may be counted in a session in spite of its limits: up to the highest limits there
-- are. A session has observed_refusals once it has observed. One whose usage another takes (k) stays within max_v, and a child (b)
-- within max_n too, which are set aside for it there.
local function observes(restrictions, n, v, max_n, max_v)
  if not restrictions or not string.find(restrictions, 'o', 1, true) or n > 1000000000 or v > 1000000000000000 then
    return false
  end
  return (v <= max_v + 0 or not string.find(restrictions, 'k', 1, true)) and (n <= max_n + 0 or not string.find(restrictions, 'b',
    1, true))
end

-- Names the limit that refuses something which exceeds these, each a name or false: while the session observes, it is none of
-- those that it goes beyond.
local function refusing(restrictions, over_p, over_n, over_v)
  if restrictions and string.find(restrictions, 'o', 1, true) then
    return over_v and string.find(restrictions, 'k', 1, true) and over_v or over_n or over_v or over_p
  end
  return over_p or over_n or over_v
end

local function is_observing(restrictions)
  return restrictions and string.find(restrictions, 'o', 1, true)
end

local function count_observed(session, refusals)
  redis.call('HSET', session, 'oc', string.format('%.0f', (redis.call('HGET', session, 'oc') or 0) + refusals))
end

-- Notes the limits that would have refused something, each of them a name, or nil or false; returns the flags after it.
local function note_observed(session, events, audit, now, flags, ...)
  local flag_of = {max_actions = 'a', max_value_usd = 'b', max_committed_usd = 'c', max_value_usd_per_action = 'd',
    max_value_usd_per_day = 'e', max_actions_per_minute = 'f'}
  for i = 1, select('#', ...) do
    local limit = select(i, ...)
    if limit then
      flags = note(session, events, audit, now, flags, flag_of[limit], 'session.would_refuse', 'limit', limit)
    end
  end
  return flags
end
