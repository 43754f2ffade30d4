-- Reads what a lease's reply shows of it: the one list of these fields in Lua. Go reads them by the same names, in
-- leasestate.go.
-- Takes lease. Sets state.
local state = redis.call('HMGET', lease, 'a', 's', 'n', 'v', 'b', 'x', 'un', 'uv', 'on', 'ov', 'at', 'lt', 'ri', 'rn', 'rv', 'rx', 'rr', 'oc')
