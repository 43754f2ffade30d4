-- Refuses secret_hash unless the agent is live and it is the agent's secret (current), or the one before in its grace time.
-- Lua interns strings, so == compares two pointers: its duration reveals nothing of the hashes.
-- Takes agent_revoked, agent_secret, now, previous_secret, previous_until, secret_hash. Sets current, in_grace.
local current = secret_hash == agent_secret
local in_grace = secret_hash == previous_secret and now < tonumber(previous_until or 0)
if agent_revoked or not (current or in_grace) then
  return {'invalid_credentials'}
end
