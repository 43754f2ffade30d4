-- Ends an instance's claim on an organization's webhooks, so that the next instance need not wait for its end.
--
-- KEYS[1] = progress  hash owp:{cell}:<organization>
--
-- ARGV[1] = holder    16 bytes, of the instance
-- ARGV[2] = term      number of the term
--
-- Reply:  {'ok'}
-- Writes: HSET progress, if the claim is still this one
local progress = KEYS[1]
local holder, term = ARGV[1], ARGV[2]

--@read progress progress_holder progress_term
if progress_holder == holder and progress_term == term then
  redis.call('HSET', progress, 'u', '0')
end
return {'ok'}
