-- Makes another script's operation, which issues a credential, idempotent for a key of the caller's choice. Stores
-- the credential with the outcome, sealed with what only the caller knows, and returns both again. The operation
-- replaces the line that says so; that names its first key and argument. Only success is an outcome. The caller of
-- this script authenticates the repeated request, before it or by whether the seal opens.
--
-- KEYS[1] = outcome          string i:{cell}:<digest>; and what follows it: the operation's keys
--
-- ARGV[1] = fingerprint      SHA-256 of the request, 32 bytes
-- ARGV[2] = request_id       of this request
-- ARGV[3] = ttl              ms that the outcome is kept
-- ARGV[4] = sealed           the credential that this request would issue, sealed
-- ARGV[5] = organization_id  16 bytes, that the outcome belongs to; and what follows it: the operation's arguments
--
-- Reply:  {'outcome', request_id, replayed, reply, sealed}  of the request that had this outcome first; replayed '1' or '';
--                                                        reply an array as the operation returns it
--         {'key_reused'}                                 the same key for another request
-- Writes: SET outcome, after what the operation writes
--@include outcomes
local outcome = KEYS[1]
local fingerprint, request_id, ttl, sealed, organization_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local function operation()
--@operation KEYS[2] ARGV[6]
end

local stored = redis.call('GET', outcome)
if stored then
  --@block same_request size=5
  local first = decode(stored, 1)
  return {'outcome', first[2], '1', first[3], first[4]}
end

local reply = operation()
if reply[1] == 'ok' then
  redis.call('SET', outcome, encode({fingerprint, request_id, reply, sealed, organization_id}), 'PX', ttl)
end
return {'outcome', request_id, '', reply, sealed}
