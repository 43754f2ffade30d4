-- Makes the caller the leader of an organization's feed unless another one is: returns its token, the number and the hash
-- of the last event, and the number of the event that its webhooks have yet to be woken for, '' for none. own is the
-- caller's token, if it was the leader, else ''. Agents that the last leader had taken come back first. A lease that would end later
-- than one of now was taken before the clock went back, and keeps nobody away.
local function lead(head, marked, taken, now, lease, own)
  local n, h, t, u, w = unpack(redis.call('HMGET', head, 'n', 'h', 't', 'u', 'w'))
  local leads_until = (u or 0) + 0
  if now < leads_until and leads_until <= now + lease and t ~= own then
    return '', '0', '', ''
  end
  local token = string.format('%d', (t or 0) + 1)
  redis.call('HSET', head, 't', token, 'u', string.format('%d', now + lease))
  for _, agent in ipairs(redis.call('ZRANGE', taken, 0, -1)) do
    redis.call('ZADD', marked, 0, agent)
  end
  redis.call('DEL', taken)
  return token, n or '0', h or '', w or ''
end
