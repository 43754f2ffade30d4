-- Encodes what is stored for an idempotency key, and decodes it: strings, false and arrays of these as one string. What a
-- request stores is an array. An agent's claim (claim_agent_key.lua) is {fingerprint, request_id}; an outcome (idempotent.lua)
-- {fingerprint, request_id, reply, organization_id}; one with a credential (idempotent_sealed.lua) {fingerprint, request_id,
-- reply, sealed, organization_id}. The organization stands last, so that its outcomes are found when it is deleted.
-- block/same_request.lua compares the start of this text. An organization's claim is another text, see include/claims.lua.
local function encode(value)
  if not value then
    return '-'
  elseif type(value) == 'string' then
    return '$' .. #value .. ':' .. value
  end
  local parts = {}
  for i = 1, #value do
    parts[i] = encode(value[i])
  end
  return '*' .. #value .. ':' .. table.concat(parts)
end

local function decode(text, at)
  local kind = string.sub(text, at, at)
  if kind == '-' then
    return false, at + 1
  end
  local colon = string.find(text, ':', at, true)
  local size = tonumber(string.sub(text, at + 1, colon - 1))
  at = colon + 1
  if kind == '$' then
    return string.sub(text, at, at + size - 1), at + size
  end
  local list = {}
  for i = 1, size do
    list[i], at = decode(text, at)
  end
  return list, at
end
