-- Reads a request for more with its fields, see include/requests.lua, and refuses one that does not exist.
local p, d, b, found = unpack(redis.call('HMGET', requests, 'p', 'd', 'b', request_id))
if not found then
  return {'unknown_request'}
end
local status, created, asked_n, asked_v, granted_n, granted_v, length, texts = string.match(found,
  '^(%a+) (%d+) (%d+) (%d+) %d+ (%d+) (%d+) (%d+) (.*)$')
local reason = string.sub(texts, 1, tonumber(length))
