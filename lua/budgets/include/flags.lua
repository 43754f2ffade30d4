-- Notes in the audit trail what a session's flags do not have yet; returns the flags after it. A flag is a letter: x the
-- session was observed expired; P the session has refused an action above its max_value_usd_per_action; n and v 80 % of
-- max_actions and of the limit of value are used; N and V all of it is used, or the session has refused something. A<percent>
-- and B<percent> are the highest threshold of each that was noted, T<percents>. the session's own thresholds, ascending; without
-- T they are 80 and 100.
local function note(session, events, audit, now, flags, flag, what, ...)
  if string.find(flags, flag, 1, true) then
    return flags
  end
  redis.call('HSET', session, 'w', flags .. flag)
  record(events, audit, now, what, 'session', string.sub(session, -36), ...)
  return flags .. flag
end

-- Notes that a session was observed expired.
local function note_expired(session, events, audit, now, flags)
  return note(session, events, by_time(audit), now, flags, 'x', 'session.expired')
end

-- Names the limit that a session's value_limit is, for its refunds (include/budget.lua).
local function name_of_value_limit(refunds, value_limit)
  local max_value = refunds and string.match(refunds, ' (%d+)$')
  if max_value and tonumber(value_limit) < tonumber(max_value) then
    return 'max_committed_usd'
  end
  return 'max_value_usd'
end

-- Returns the lowest of these thresholds above the one that was noted, nil for none: as text, 101 when there is none.
local function next_threshold(own, noted)
  for percent in string.gmatch(own, '%d+') do
    if percent + 0 > (noted or 0) + 0 then
      return percent
    end
  end
  return '101'
end

-- Writes what the session's restrictions (include/restrict.lua) say of thresholds of its own, for these flags.
local function watch_thresholds(session, flags)
  local own = string.match(flags, 'T([%d ]*)%.')
  local restrictions = own and redis.call('HGET', session, 'r')
  if restrictions and string.find(restrictions, 't', 1, true) then
    local of_r = string.gsub(restrictions, 't%d+,%d+%.', 't' .. next_threshold(own, string.match(flags, 'A(%d+)')) .. ','
      .. next_threshold(own, string.match(flags, 'B(%d+)')) .. '.')
    redis.call('HSET', session, 'r', of_r)
  end
end

-- Tells which thresholds of a limit used has reached, each once: sign is A or B.
local function note_thresholds(session, events, audit, now, flags, sign, limit, used, max)
  local noted = (string.match(flags, sign .. '(%d+)') or 0) + 0
  local highest = noted
  for percent in string.gmatch(string.match(flags, 'T([%d ]*)%.') or '80 100', '%d+') do
    if percent + 0 > noted and used * 100 >= max * percent then
      highest = percent
      local value, of = 'charged', limit == 'max_committed_usd' and 'max_committed' or 'max_value'
      if sign == 'A' then
        value, of = 'actions', 'max_actions'
      end
      record(events, audit, now, 'budget.threshold', 'session', string.sub(session, -36), 'budget', 'session', 'limit', limit,
        'threshold', percent, value, string.format('%.0f', used), of, string.format('%.0f', max))
    end
  end
  if highest ~= noted then
    flags = string.gsub(flags, sign .. '%d+', '') .. sign .. highest
    redis.call('HSET', session, 'w', flags)
    watch_thresholds(session, flags)
  end
  return flags
end

-- Forgets which thresholds of a limit were noted that used has not reached since the limit is max; returns the flags after it.
local function forget_thresholds(flags, sign, used, max)
  local noted = string.match(flags, sign .. '(%d+)')
  if not noted or used * 100 >= max * noted then
    return flags
  end
  local reached = math.floor(used * 100 / max)
  return string.gsub(flags, sign .. '%d+', '') .. (reached > 0 and sign .. string.format('%d', reached) or '')
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
  local own = string.find(flags, 'T', 1, true)
  if own or n * 5 >= max_n * 4 then
    flags = note_thresholds(session, events, audit, now, flags, 'A', 'max_actions', n, max_n)
  end
  if value > 0 and (own or value * 5 >= max_value * 4) then
    flags = note_thresholds(session, events, audit, now, flags, 'B', limit, value, max_value)
  end
  return flags
end
