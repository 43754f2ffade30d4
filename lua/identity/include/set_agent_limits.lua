-- Sets limits of an agent (budgets/include/agent_limits.lua). wanted is '<max_v> <max_n> <max_open>', each '=' to leave it and '-' for
-- none. Counting begins when a limit is set; a day that was counted in already goes on where it was, so that what it counted
-- cannot be given back twice. Returns all three after the change in the form of wanted, for the audit trail; nil when it
-- changes nothing.
local function set_agent_limits(agent, agent_open, now, wanted)
  local wanted_v, wanted_n, wanted_open = string.match(wanted, '^(%S+) (%S+) (%S+)$')
  local restricted, limited_day, max_open = unpack(redis.call('HMGET', agent, 'restricted', 'limited_day', 'max_open_sessions'))
  local flags = string.gsub(string.match(restricted or '', '^%a*'), '[lo]', '')
  local max_v, max_n, day, left, tat = string.match(restricted or '', '^%a+ (%d*) (%d*) (%d+) (%S*) (.*)')
  if not max_v then
    max_v, max_n, day = '', '', 0
  end
  local used, backlog = max_v ~= '' and max_v - left or 0, 0
  if max_n ~= '' then
    local elapsed, most = (now - day * 86400000) * max_n, max_n * 60000
    --@block minute_backlog
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
  end
  if wanted_n ~= '=' then
    max_n = wanted_n == '-' and '' or wanted_n -- when it is lower, the agent waits for a minute at most
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
  end
  local noted = redis.call('HGET', agent, 'limits_noted') or ''
  redis.call('HDEL', agent, 'limits_noted', 'restricted')
  flags = flags .. ((max_v ~= '' or max_n ~= '') and 'l' or '') .. (max_open and 'o' or '')
  if max_v ~= '' or max_n ~= '' then
    local today = math.floor(now / 86400000)
    if today > day + 0 then
      day, used = today, 0
    end
    local head = string.format('%s %s %s %d', flags, max_v, max_n, day)
    left = max_v ~= '' and max_v - used or ''
    tat = max_n ~= '' and (now - day * 86400000) * max_n + math.min(backlog, max_n * 60000) or ''
    --@block limits_text text=flags
    local kept = string.format('%d', today) -- thresholds that were noted and are still reached
    for percent in string.gmatch(string.match(noted, '^' .. kept .. '( .*)') or '', ' (%d+)%%') do
      kept = kept .. (max_v ~= '' and used * 100 >= max_v * percent and ' ' .. percent .. '%' or '')
    end
    if string.find(kept, '%', 1, true) then
      redis.call('HSET', agent, 'limits_noted', kept)
    end
  end
  if flags ~= '' then
    redis.call('HSET', agent, 'restricted', flags)
  end
  return shown(max_v) .. ' ' .. shown(max_n) .. ' ' .. shown(max_open)
end
