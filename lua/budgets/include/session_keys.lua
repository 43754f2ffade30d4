-- Returns which of a session's keys live, ids of 16 bytes, which ended when all tokens of the agent were revoked, and the 3 bytes that
-- name the agent's epoch in the ids of those that live. keys are such ids one behind another.
local function keys_by_epoch(keys, epoch)
  epoch = (epoch or 0) % 16777216
  local bytes = string.char(math.floor(epoch / 65536), math.floor(epoch / 256) % 256, epoch % 256)
  local live, ended = {}, {}
  for i = 1, #keys, 16 do
    local id = string.sub(keys, i, i + 15)
    local of = string.sub(id, 10, 12) == bytes and live or ended
    of[#of + 1] = id
  end
  return live, ended, bytes
end
