-- Revokes a refresh-token family for the agent's organization, and with it the family's access tokens. The index says
-- whether the family is this agent's: the id alone does not, because agents of one cell share a slot. An access token without a refresh
-- token is in no index: its id is marked while such a token could live, and an index of such marks bounds them. A session key is no
-- family: delete_session_key.lua revokes it. Revoking again changes nothing while the family is marked: the first answer may have been lost.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = family           hash f:{cell}:<family>
-- KEYS[3] = events           stream ev:{cell}:<agent>
-- KEYS[4] = families         zset af:{cell}:<agent>
-- KEYS[5] = token_marks      zset am:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the calling organization
-- ARGV[2] = revoked_family   'family:' and the 16-byte id of the family to revoke: the field that marks it
-- ARGV[3] = mark_ttl         ms that the mark must outlive, so that no access token of the family outlives it
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok', marked}  marked '1' if it has marked the id of a token without a refresh token, else ''
--         {'unknown_agent'}
--         {'unknown_family'}
--         {'too_many_marks'}  1,000 ids without a family are marked, which a caller can invent
-- Writes: HSET agent, DEL family, ZREM families, XADD events and HDEL agent of marks that have lapsed, once; of a token without a
-- refresh token also ZADD and PEXPIRE token_marks, and ZREM of those that have lapsed
--@include audit
--@include family_score
local agent, family, events, families, token_marks = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local organization_id, revoked_family, mark_ttl, audit = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local member = string.sub(revoked_family, 8, 21)
local most_marks = 1000 -- of tokens without a refresh token

--@block now

--@read agent agent_organization family_revoked=revoked_family agent_epoch
--@block refuse_unknown_agent
if string.byte(revoked_family, -10) >= 136 then -- of a session key
  return {'unknown_family'}
end
if family_revoked then
  return {'ok', ''}
end
local of_token, current_epoch = string.byte(revoked_family, -10) >= 128, tonumber(agent_epoch or 0)
local lapsed = {}
if of_token then
  local high, middle, low = string.byte(revoked_family, -7, -5)
  local epoch = (high * 256 + middle) * 256 + low
  if epoch > current_epoch % 16777216 then
    return {'unknown_family'}
  end
  if epoch < current_epoch % 16777216 then
    return {'ok', ''} -- it was revoked with all others
  end
  -- Marks of earlier epochs have lapsed too, and come first: block/refuse_unbound.lua refuses their tokens.
  lapsed = redis.call('ZRANGEBYSCORE', token_marks, '-inf', '(' .. family_score(current_epoch, now), 'LIMIT', 0, 16)
  if redis.call('ZCARD', token_marks) - #lapsed >= most_marks then
    return {'too_many_marks'}
  end
elseif not redis.call('ZSCORE', families, member) then
  return {'unknown_family'}
end

if #lapsed > 0 then
  local cell, fields = string.sub(revoked_family, -2), {}
  for _, marked in ipairs(lapsed) do
    fields[#fields + 1] = 'family:' .. marked .. cell
    fields[#fields + 1] = 'bound:' .. marked .. cell
  end
  redis.call('HDEL', agent, unpack(fields))
  redis.call('ZREM', token_marks, unpack(lapsed))
end
--@block mark_family
if of_token then
  local kept, ttl = mark_ttl, ARGV[3]
  redis.call('ZADD', token_marks, family_score(current_epoch, now + mark_ttl), member)
  --@block extend_ttl key=token_marks
end
--@block drop_lapsed_marks
record(events, audit, now, 'token.revoked', 'family', string.sub(family, -36))
return {'ok', of_token and '1' or ''}
