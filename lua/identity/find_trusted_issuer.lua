-- Reads the trusted issuer of an organization by its name, for a token that names it. The caller is not authenticated yet.
--
-- KEYS[1] = issuers  hash oti:{cell}:<organization>
-- KEYS[2] = names    hash otn:{cell}:<organization>
--
-- ARGV[1] = name     of the issuer: the iss of its tokens
--
-- Reply:  {'ok', issuer_id, settings}  16 bytes; as Go wrote them
--         {'unknown_issuer'}
-- Writes: nothing
local issuers, names = KEYS[1], KEYS[2]
local name = ARGV[1]

local issuer_id = redis.call('HGET', names, name)
local settings = issuer_id and redis.call('HGET', issuers, issuer_id)
if not settings then
  return {'unknown_issuer'}
end
return {'ok', issuer_id, settings}
