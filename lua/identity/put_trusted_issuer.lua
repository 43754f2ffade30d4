-- Stores a new trusted issuer of an organization. An organization trusts an issuer once.
--
-- KEYS[1] = organization  hash o:{cell}:<organization>
-- KEYS[2] = issuers       hash oti:{cell}:<organization>
-- KEYS[3] = names         hash otn:{cell}:<organization>
--
-- ARGV[1] = credential    the API key presented and the role it needs, see block/api_key.lua
-- ARGV[2] = issuer_id     16 bytes
-- ARGV[3] = name          of the issuer: the iss of its tokens
-- ARGV[4] = settings      as Go writes them
-- ARGV[5] = most          trusted issuers that an organization may have
--
-- Reply:  {'ok', issuer_id}
--         {'invalid_api_key'}
--         {'insufficient_role', required_role}
--         {'issuer_exists'}  the organization has one of that name
--         {'over_quota', quota, used, max}
-- Writes: HSET issuers, names and organization
--@include count_bytes
local organization, issuers, names = KEYS[1], KEYS[2], KEYS[3]
local credential, issuer_id, name, settings, most = unpack(ARGV)

--@block now
--@block api_key
if redis.call('HEXISTS', names, name) == 1 then
  return {'issuer_exists'}
end
local used = redis.call('HLEN', issuers)
if used >= tonumber(most) then
  return {'over_quota', 'trusted_issuers', string.format('%d', used), most}
end
redis.call('HSET', issuers, issuer_id, settings)
redis.call('HSET', names, name, issuer_id)
count_bytes(organization, 110 + #name + #settings)
return {'ok', issuer_id}
