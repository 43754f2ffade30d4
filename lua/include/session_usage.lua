-- Returns what a session itself has used: actions and micro-USD without what is delegated to its children or was used by them,
-- and without value of open leases, which is held. fields are n, v, lv, dn, dv, kn and kv.
local function own_usage(fields)
  local n, v, lv, dn, dv, kn, kv = unpack(fields, 1, 7)
  return n - (dn or 0) - (kn or 0), v - (lv or 0) - (dv or 0) - (kv or 0)
end
