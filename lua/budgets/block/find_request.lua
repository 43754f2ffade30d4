-- Reads a request for more with its fields, see include/requests.lua, and refuses one that does not exist.
-- Takes request_id, requests. Sets asked_n, asked_v, b, created, d, found, granted_n, granted_v, length, p, reason, status,
-- texts.
--@read requests p d b found=request_id
if not found then
  return {'unknown_request'}
end
local status, created, asked_n, asked_v, granted_n, granted_v, length, texts = string.match(found,
  '^(%a+) (%d+) (%d+) (%d+) %d+ (%d+) (%d+) (%d+) (.*)$')
local reason = string.sub(texts, 1, tonumber(length))
