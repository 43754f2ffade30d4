-- Claims an organization's webhooks for an instance to deliver, or renews its claim. A new term gets the next number. A
-- claim that would end later than one of now was made before the clock went back, and keeps no instance away.
--
-- KEYS[1] = webhooks  hash ow:{cell}:<organization>
-- KEYS[2] = progress  hash owp:{cell}:<organization>
--
-- ARGV[1] = holder    16 bytes, of the instance
-- ARGV[2] = term      ms that the claim lasts
--
-- Reply:  {'ok', progress_term, now, stored, reached}
--             progress_term the number of the term; now in ms since 1970; both arrays of names and values, as
--                                          in list_webhooks.lua
--         {'claimed', ends_at}                   by another instance until then, in ms since 1970
--         {'unknown_webhook'}              the organization has none
-- Writes: HSET progress
local webhooks, progress = KEYS[1], KEYS[2]
local holder, term = ARGV[1], ARGV[2]

--@block now
if redis.call('HLEN', webhooks) == 0 then
  return {'unknown_webhook'}
end
--@read progress progress_holder progress_term ends_at
if progress_holder and progress_holder ~= holder and now < tonumber(ends_at) and tonumber(ends_at) <= now + term then
  return {'claimed', ends_at}
end
if progress_holder ~= holder or now >= tonumber(ends_at) then
  progress_term = string.format('%d', (progress_term or 0) + 1)
end
redis.call('HSET', progress, 'h', holder, 't', progress_term, 'u', string.format('%d', now + term))
local stored, reached = redis.call('HGETALL', webhooks), redis.call('HGETALL', progress)
return {'ok', progress_term, string.format('%d', now), stored, reached}
