-- Says whether all agents of an organization must be looked at: an instance ended without saying so and after the last
-- look, or up to settle ms ago, when calls that it had sent may still have come; or the last look is more than an hour ago. What
-- lies too far ahead was written before the clock went back.
local function look_due(head, instances, now, settle)
  local looked = (redis.call('HGET', head, 's') or 0) + 0
  if now - looked > 3600000 or looked > now or redis.call('ZCOUNT', instances, string.format('(%d', now + settle), '+inf') > 0 then
    return true
  end
  local gone = redis.call('ZRANGEBYSCORE', instances, '-inf', now, 'WITHSCORES')
  for i = 2, #gone, 2 do
    if looked < gone[i] + 0 or gone[i] + settle < now then
      return true
    end
  end
  return false
end
