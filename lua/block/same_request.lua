-- Refuses an idempotency key under which another request has stored something; include/outcomes.lua says how a request does,
-- as an array of so many values.
local mine = '*$size:$32:' .. fingerprint .. '$'
if string.sub(stored, 1, #mine) ~= mine then
  return {'key_reused'}
end
