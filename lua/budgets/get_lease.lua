-- Reads a lease and what its status depends on.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = leases           zset sl:{cell}:<session>
-- KEYS[4] = lease            hash l:{cell}:<lease>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = lease_id         16 bytes
--
-- Reply:  {'ok', open, state}  open '1' while it may be spent; state as settle_lease.lua
--         {'unknown_agent'}
--         {'invalid_token'}    the access token's agent or family is revoked
--         {'unknown_lease'}
-- Writes: nothing
--@include open_lease
local agent, session, leases, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, agent_id, caller_family, lease_id = unpack(ARGV)

--@block now
--@block either_caller session=session

--@block lease_state
local session_agent, lease_actions, lease_value, lease_expires_at, lease_settled_at = state[1], state[3], state[4], state[6], state[11]
if session_agent ~= agent_id then
  return {'unknown_lease'}
end
local open = ''
if not lease_settled_at and now < tonumber(lease_expires_at)
  and redis.call('ZSCORE', leases, open_lease(lease_id, lease_actions, lease_value)) then
  open = '1'
end
return {'ok', open, state}
