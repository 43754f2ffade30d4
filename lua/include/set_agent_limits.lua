-- Sets limits of an agent (include/agent_limits.lua). wanted is '<max_v> <max_n> <max_open>', each '=' to leave it and '-' for
-- none. Counting begins when a limit is set; a day that was counted in already goes on where it was, so that what it counted
-- cannot be given back twice. Returns all three after the change in the form of wanted, for the audit trail; nil when it
-- changes nothing.
local function set_agent_limits(agent, agent_open, now, wanted)
  local wanted_v, wanted_n, wanted_open = string.match(wanted, '^(%S+) (%S+) (%S+)$')
  local restricted, limited_day, max_open = unpack(redis.call('HMGET', agent, 'restricted', 'limited_day', 'max_open_sessions'))
  local flags = string.gsub(string.match(restricted or '', '^%a*'), '[lo]', '')
  local max_v, max_n, day, used, at, backlog = string.match(restricted or '', '^%a+ (%d*) (%d*) (%d+) (%d+) (%d+) (%d+)$')
  local today = math.floor(now / 86400000)
  if not max_v then
    max_v, max_n, day, used, at, backlog = '', '', 0, 0, 0, 0
  end
  local function shown(limit)
    return limit and limit ~= '' and limit or '-'
  end
  local function same(limit, new)
    return new == '=' or new == shown(limit)
  end
  if same(max_v, wanted_v) and same(max_n, wanted_n) and same(max_open, wanted_open) then
    return nil
  end
  if wanted_v ~= '=' then
    if max_v == '' then
      day, used = string.match(limited_day or '0 0', '^(%d+) (%d+)$')
    end
    max_v = wanted_v == '-' and '' or wanted_v
    redis.call('HSET', agent, 'limited_day', string.format('%d %d', day, used))
    if today > day + 0 then
      day, used = today, 0
    end
  end
  if wanted_n ~= '=' then
    if max_n ~= '' then
      backlog = math.max(backlog - math.max(now - at, 0) * max_n, 0)
    end
    max_n, at = wanted_n == '-' and '' or wanted_n, now
    if max_n == '' then
      at, backlog = 0, 0
    end
  end
  if wanted_open ~= '=' then
    if not max_open or wanted_open == '-' then
      redis.call('UNLINK', agent_open)
    end
    max_open = wanted_open ~= '-' and wanted_open
    redis.call('HDEL', agent, 'max_open_sessions')
  end
  if max_open then
    redis.call('HSET', agent, 'max_open_sessions', max_open)
    flags = flags .. 'o'
  end
  redis.call('HDEL', agent, 'limits_noted', 'restricted')
  if max_v ~= '' or max_n ~= '' then
    flags = string.format('%sl %s %s %d %d %d %d', flags, max_v, max_n, day, used, at, backlog)
  end
  if flags ~= '' then
    redis.call('HSET', agent, 'restricted', flags)
  end
  return shown(max_v) .. ' ' .. shown(max_n) .. ' ' .. shown(max_open)
end
