-- Makes the caller the leader of an organization's feed unless another one is: returns its token, the number and the hash
-- of the last event, the number of the event that its webhooks have yet to be woken for, and the time from which something is due that is
-- yet to be noted in the queue (note_due.lua), '' for none. own is the
-- caller's token, if it was the leader, else ''. Agents that the last leader had taken come back first. A lease that would end later
-- than one of now was taken before the clock went back, and keeps no instance away.
local function lead(head, marked, taken, now, lease, own)
  --@read head last_number last_hash head_token leads_until wakes_from due_from
  local lease_ends = (leads_until or 0) + 0
  if now < lease_ends and lease_ends <= now + lease and head_token ~= own then
    return '', '0', '', '', ''
  end
  local token = string.format('%d', (head_token or 0) + 1)
  redis.call('HSET', head, 't', token, 'u', string.format('%d', now + lease))
  for _, agent in ipairs(redis.call('ZRANGE', taken, 0, -1)) do
    redis.call('ZADD', marked, 0, agent)
  end
  redis.call('DEL', taken)
  return token, last_number or '0', last_hash or '', wakes_from or '', due_from or ''
end
