-- Notes in the audit trail what a session's flags do not have yet; returns the flags after it. A flag is a letter: x the
-- session was observed expired; P the session has refused an action above its max_value_usd_per_action;
-- n and v 80 % of max_actions and of the limit of value are used; N and V all of it is used,
-- or the session has refused something.
local function note(session, events, audit, now, flags, flag, what, ...)
  if string.find(flags, flag, 1, true) then
    return flags
  end
  redis.call('HSET', session, 'w', flags .. flag)
  record(events, audit, now, what, 'session', string.sub(session, -36), ...)
  return flags .. flag
end

-- Names the limit that a session's mv is, for its gb (include/budget.lua).
local function value_limit(gb, mv)
  local max_value = gb and string.match(gb, ' (%d+)$')
  if max_value and tonumber(mv) < tonumber(max_value) then
    return 'max_committed_usd'
  end
  return 'max_value_usd'
end

-- Notes how far the limits are used: n of max_n actions; value, used and held, of max_value, which is value_limit.
local function note_usage(session, events, audit, now, flags, n, max_n, value, max_value, limit)
  if n * 5 >= max_n * 4 then
    flags = note(session, events, audit, now, flags, 'n', 'session.limit_warning', 'limit', 'max_actions')
  end
  if n >= max_n then
    flags = note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', 'max_actions')
  end
  if value > 0 and value * 5 >= max_value * 4 then
    flags = note(session, events, audit, now, flags, 'v', 'session.limit_warning', 'limit', limit)
  end
  if value > 0 and value >= max_value then
    flags = note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
  end
  return flags
end
