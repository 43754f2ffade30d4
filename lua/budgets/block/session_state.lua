-- Reads what a session's reply shows of it: the one list of these fields in Lua. Go reads them by the same names, in
-- sessionstate.go.
-- Takes session. Sets ended_at, expires_at, held_value, session_agent, state.
local state = redis.call('HMGET', session, 'a', 'n', 'ma', 'v', 'mv', 'h', 'x', 'e', 'c', 'sc', 'ov', 'gb', 'md', 'lv', 'ml', 'su',
  'sr', 'r', 'oc', 'mp', 'dn', 'dv', 'pa', 'w')
local session_agent, held_value, expires_at, ended_at = state[1], state[6], state[7], state[8]
