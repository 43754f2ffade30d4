-- Returns the id of an access token without a refresh token, as text: the drawn one, a UUIDv8, with the epoch of its agent in bytes 10
-- to 12. So the token itself says whether all tokens of the agent were revoked since, and nothing is stored for it.
local function in_epoch(drawn, epoch)
  local digits = string.format('%06x', (epoch or 0) % 16777216)
  return string.sub(drawn, 1, 21) .. string.sub(digits, 1, 2) .. '-' .. string.sub(digits, 3) .. string.sub(drawn, 29)
end
