-- Opens a refresh-token family of an agent that has authenticated, at generation 1. Sets scopes to those that the family has, and
-- oldest to those families that are to be ended because the agent has too many.
-- Takes agent, agent_epoch, agent_restricted, agent_revoked, agent_scopes, audience, families, family, family_id, key, lifetime,
-- now, refresh_ttl, scopes. Sets ended, epoch, excess, fields, kept, max_families, oldest, scopes, since_drawn.
local max_families = 10000 -- of one agent; an exchange beyond ends those that were not used for longest

--@block refuse_suspended
--@block hold_scopes held=agent_scopes
--@block hold_audience
--@block require_key

-- The index holds families that have ended for up to a day. One exchange of eight, by a random byte, drops some.
local epoch = tonumber(agent_epoch or 0)
local kept = redis.call('ZCARD', families)
local ended, oldest = {}, {}
if kept >= max_families or string.byte(family_id, 13) % 8 == 0 then
  ended = redis.call('ZRANGEBYSCORE', families, family_score(epoch, 0), family_score(epoch, now), 'LIMIT', 0, 16)
end
local excess = kept - #ended + 1 - max_families

-- The id has the time at which it was drawn, by another clock. What is kept of the creation is only how long after that
-- it was: most often a byte or two instead of nine.
local since_drawn = string.format('%d', now - drawn_at(family_id, 1))
local fields = {'g', 1, 'r', string.format('%d', now), 'c', since_drawn}
if scopes == '' then
  scopes = agent_scopes
else
  fields[7], fields[8] = 'sc', scopes
end
if audience ~= '' then
  fields[#fields + 1] = 'au'
  fields[#fields + 1] = audience
end
if agent_epoch then
  fields[#fields + 1] = 'e'
  fields[#fields + 1] = agent_epoch
end
--@block optional_field field=k value=key
redis.call('HSET', family, unpack(fields))
redis.call('PEXPIRE', family, string.format('%d', math.min(refresh_ttl, lifetime)))
if #ended > 0 then
  redis.call('ZREM', families, unpack(ended))
end
if excess > 0 then
  oldest = redis.call('ZRANGE', families, 0, math.min(excess, 8) - 1)
end
index_family(families, string.sub(family_id, 1, 14), epoch, now, refresh_ttl)
