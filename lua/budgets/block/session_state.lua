-- Reads what a session's reply shows of it: the one list of these fields in Lua. Go reads them by the same names, in
-- sessionstate.go.
local state = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'ov', 'gb', 'md', 'lv', 'ml', 'su', 'sr', 'r', 'oc', 'mp', 'dn', 'dv', 'pa', 'w')
local a, h, x, e = state[1], state[6], state[7], state[8]
