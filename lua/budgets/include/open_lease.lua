-- Returns the member of an open lease in the zset of its session by expiry: its id, actions and value in micro-USD.
local function open_lease(lease_id, n, v)
  return lease_id .. n .. ' ' .. v
end
