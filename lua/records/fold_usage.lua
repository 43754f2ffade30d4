-- Folds a session's usage into the days of its agent. Folding again changes nothing.
--
-- KEYS[1] = session          hash s:{cell}:<session>
-- KEYS[2] = usage            hash uy:{cell}:<agent>
-- KEYS[3] = agent            hash a:{cell}:<agent>
--
-- ARGV[1] = agent_id         16 bytes
-- ARGV[2] = kept             days before this one that are kept
--
-- Reply:  {'ok'}
--         {'holds_due'}    nothing was done: release_holds.lua goes first, so that a lease whose time is up counts as spent
-- Writes: HSET session; HSET, HDEL and PEXPIRE usage
--@include session_usage
--@include fold_usage
local session, usage, agent = KEYS[1], KEYS[2], KEYS[3]
local agent_id, kept = ARGV[1], ARGV[2]

--@block now

--@read session session_agent holds_due
if holds_due and redis.call('EXISTS', agent) == 1 then -- else nothing can settle its leases any more
  --@block refuse_holds_due due=holds_due
end
if session_agent == agent_id then -- else it has expired, or is a tombstone
  redis.call('HDEL', session, '') -- goes on when Redis is full, see lua.go
  fold_usage(session, usage, now, agent_id, kept)
end
return {'ok'}
