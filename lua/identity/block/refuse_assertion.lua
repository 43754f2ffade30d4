-- Refuses an assertion (RFC 7523) that was verified, unless its agent is live, has the keys still that verified it, and has not
-- used it before. An agent may have used 10,000 that have not expired.
-- Takes agent_keys_version, agent_organization, agent_revoked, assertion, assertions, keys_version, now. Sets used_until.
if agent_revoked or not agent_organization then
  return {'invalid_credentials'}
end
if (agent_keys_version or '') ~= keys_version then
  return {'changed_meanwhile'}
end
local used_until = redis.call('ZSCORE', assertions, assertion)
if used_until and now < tonumber(used_until) then
  return {'invalid_credentials'}
end
if redis.call('ZCOUNT', assertions, string.format('(%d', now), '+inf') >= 10000 then
  return {'too_many_assertions'}
end
