-- Refuses an idempotency key under which a request with another fingerprint has stored a value. include/outcomes.lua has the
-- encoding: an array of $size values.
-- Takes fingerprint, stored. Sets mine.
local mine = '*$size:$32:' .. fingerprint .. '$'
if string.sub(stored, 1, #mine) ~= mine then
  return {'key_reused'}
end
