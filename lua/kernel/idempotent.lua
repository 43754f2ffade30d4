-- Makes another script's operation idempotent for a key of the caller's choice: stores the first outcome with the
-- change, and returns it again. The operation replaces the line that says so; that names its first key and
-- argument. Failed authentication is no outcome: the client may repeat the request with a live token. Neither is a
-- refusal of what the request names (an unknown id, a scope that is not held, an amount beyond what the API
-- takes), a suspension, or a limit of the agent, which makes room with time: the client may correct it, or repeat it later, under the same key.
--
-- KEYS[1] = outcome          string i:{cell}:<digest>
-- KEYS[2] = agent            hash a:{cell}:<agent>
-- KEYS[3] = session          hash s:{cell}:<session> in an operation that session keys may use; and what follows it: the operation's keys
--
-- ARGV[1] = fingerprint      SHA-256 of the request, 32 bytes
-- ARGV[2] = request_id       of this request
-- ARGV[3] = ttl              ms that the outcome is kept
-- ARGV[4] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[5] = organization_id  16 bytes, of the caller; and what follows it: the operation's arguments
--
-- Reply:  {'outcome', request_id, replayed, reply}  of the request that had this outcome first; replayed '1' or ''; reply an
--                                                array as the operation returns it
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'key_reused'}                         the same key for another request
-- Writes: SET outcome, after what the operation writes
--@include outcomes
local outcome, agent, session = KEYS[1], KEYS[2], KEYS[3]
local fingerprint, request_id, ttl, caller_family, organization_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function operation()
--@operation KEYS[2] ARGV[5]
end

local stored = redis.call('GET', outcome)
if stored then
  --@block either_caller session=session
  local first = decode(stored, 1)
  if first[1] ~= fingerprint then
    return {'key_reused'}
  end
  return {'outcome', first[2], '1', first[3]}
end

local reply = operation()
local none = {
  unknown_agent = 1, unknown_session = 1, unknown_transaction = 1, unknown_lease = 1, scope_not_held = 1, above_bounds = 1,
  invalid_token = 1, token_lacks_scope = 1, holds_due = 1, agent_holds_due = 1, agent_limit = 1,
  no_outcome = 1, given_up = 1, stale = 1, beyond_parent = 1, parent_enforces = 1, agent_suspended = 1, session_suspended = 1,
}
if not none[reply[1]] then
  redis.call('SET', outcome, encode({fingerprint, request_id, reply, organization_id}), 'PX', ttl)
end
return {'outcome', request_id, '', reply}
