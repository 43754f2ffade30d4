-- Notes that an instance may change agents of an organization, and returns until when that holds. confirmed is what was
-- confirmed to it last, '' for nothing. If Redis knows of less, a failover has lost what it had acknowledged, perhaps the mark
-- of an event that it has kept: then all agents are to be looked at, and a look that has begun does not count.
local function enter(head, instances, instance, now, valid_for, confirmed)
  if confirmed ~= '' and (redis.call('ZSCORE', instances, instance) or 0) + 0 < confirmed + 0 then
    redis.call('HDEL', head, 's', 'l')
  end
  local entered_until = string.format('%d', now + valid_for)
  redis.call('ZADD', instances, entered_until, instance)
  return entered_until
end
