-- Makes another script's operation happen once for a key of the caller's choice: the first outcome is kept with the change,
-- and given again. The operation stands in this script where it says so; it is not given KEYS[1] and ARGV[1] to ARGV[4].
-- That the caller is not let in (any more) is no outcome: the same request may come again with a live token.
--
-- KEYS[1] = outcome          string i:{cell}:<digest>
-- KEYS[2] = agent            hash a:{cell}:<agent>; and what follows it: the operation's keys
--
-- ARGV[1] = fingerprint      SHA-256 of what is asked, 32 bytes
-- ARGV[2] = request_id       of the request that asks
-- ARGV[3] = ttl              ms that the outcome is kept
-- ARGV[4] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[5] = organization_id  16 bytes, of the caller; and what follows it: the operation's arguments
--
-- Reply:  {'once', request_id, replayed, reply}  of the request that had this outcome first; replayed '1' or ''; reply an
--                                                array as the operation gives it
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'key_reused'}                         the same key for another request
-- Writes: SET outcome, after what the operation writes
local outcome, agent = KEYS[1], KEYS[2]
local fingerprint, request_id, ttl, caller_family, organization_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- Writes strings, false and arrays of these as one string; read takes them from it.
local function write(value)
  if not value then
    return '-'
  elseif type(value) == 'string' then
    return '$' .. #value .. ':' .. value
  end
  local parts = {}
  for i = 1, #value do
    parts[i] = write(value[i])
  end
  return '*' .. #value .. ':' .. table.concat(parts)
end

local function read(text, at)
  local kind = string.sub(text, at, at)
  if kind == '-' then
    return false, at + 1
  end
  local colon = string.find(text, ':', at, true)
  local size = tonumber(string.sub(text, at + 1, colon - 1))
  at = colon + 1
  if kind == '$' then
    return string.sub(text, at, at + size - 1), at + size
  end
  local list = {}
  for i = 1, size do
    list[i], at = read(text, at)
  end
  return list, at
end

local function operation(KEYS, ARGV)
--@operation
end

local stored = redis.call('GET', outcome)
if stored then
  local holder = redis.call('HMGET', agent, 'organization', 'revoked', caller_family)
  if holder[1] ~= organization_id then
    return {'unknown_agent'}
  end
  if holder[3] or (holder[2] and caller_family ~= '') then
    return {'invalid_token'}
  end
  local first = read(stored, 1)
  if first[1] ~= fingerprint then
    return {'key_reused'}
  end
  return {'once', first[2], '1', first[3]}
end

local reply = operation({unpack(KEYS, 2)}, {unpack(ARGV, 5)})
if reply[1] ~= 'unknown_agent' and reply[1] ~= 'invalid_token' and reply[1] ~= 'holds_due' then
  -- The organization stands last, so that its outcomes can be found when it is deleted.
  redis.call('SET', outcome, write({fingerprint, request_id, reply, organization_id}), 'PX', ttl)
end
return {'once', request_id, '', reply}
