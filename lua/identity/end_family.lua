-- Revokes a refresh-token family for the agent's organization, and with it the family's access tokens. The index says
-- whether the family is this agent's: the id alone does not, because agents of one cell share a slot. An access token without a refresh
-- token is in no index: its id is marked while such a token could live. Revoking again changes nothing while the family is
-- marked: the first answer may have been lost.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = family           hash f:{cell}:<family>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = families         zset af:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = revoked_family   'family:' and the 16-byte id of the family to revoke: the field that marks it
-- ARGV[3] = mark_ttl         ms that the mark must outlive, so that no access token of the family outlives it
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok'}
--         {'unknown_agent'}
--         {'unknown_family'}
--         {'too_many_marks'}  of ids without a family, which a caller can invent
-- Writes: HSET agent, DEL family, ZREM families, XADD events and HDEL agent of marks that have lapsed, once
--@include audit
--@include drawn_at
local agent, family, events, families = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local organization_id, revoked_family, mark_ttl, audit = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local member = string.sub(revoked_family, 8, 21)
local most_fields = 40000 -- two for each mark: 20,000 within six hours

--@block now

local agent_organization, family_revoked, agent_epoch = unpack(redis.call('HMGET', agent, 'organization', revoked_family, 'epoch'))
--@block refuse_unknown_agent
if family_revoked then
  return {'ok'}
end
if string.byte(revoked_family, -10) >= 128 then
  local high, middle, low = string.byte(revoked_family, -7, -5)
  local epoch = (high * 256 + middle) * 256 + low
  if math.abs(now - drawn_at(revoked_family, 8)) > mark_ttl or epoch > (agent_epoch or 0) % 16777216 then
    return {'unknown_family'}
  end
  if epoch < (agent_epoch or 0) % 16777216 then
    return {'ok'} -- it was revoked with all others
  end
  if redis.call('HLEN', agent) > most_fields then
    return {'too_many_marks'}
  end
elseif not redis.call('ZSCORE', families, member) then
  return {'unknown_family'}
end

--@block mark_family
--@block drop_lapsed_marks
record(events, audit, now, 'token.revoked', 'family', string.sub(family, -36))
return {'ok'}
