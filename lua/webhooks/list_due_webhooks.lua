-- Reads which organizations' webhooks are to be looked at now, the longest due first. What lies farther ahead than any
-- retry was written before the clock went back, and is due too.
--
-- KEYS[1] = queue  zset wq
--
-- ARGV[1] = limit     how many at the most
-- ARGV[2] = farthest  ms ahead of now that a retry may lie
--
-- Reply:  {'ok', due}  an array of 16 bytes each
-- Writes: nothing
local queue = KEYS[1]
local limit, farthest = ARGV[1] + 0, ARGV[2]

--@block now
local due = redis.call('ZRANGEBYSCORE', queue, '-inf', string.format('%d', now), 'LIMIT', 0, limit)
if #due < limit then
  local from = string.format('(%d', now + farthest)
  for _, organization in ipairs(redis.call('ZRANGEBYSCORE', queue, from, '+inf', 'LIMIT', 0, limit - #due)) do
    due[#due + 1] = organization
  end
end
return {'ok', due}
