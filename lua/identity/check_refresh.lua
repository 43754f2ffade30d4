-- Checks whether a refresh token is unspent and its agent and family are live, and returns when it expires. A
-- generation ahead of the stored one is unspent: Redis has lost its last write.
--
-- KEYS[1] = agent         hash a:{cell}:<agent>
-- KEYS[2] = family        hash f:{cell}:<family>
--
-- ARGV[1] = generation    of the token
-- ARGV[2] = token_family  'family:' and the 16-byte family id of the token
-- ARGV[3] = lifetime      ms that a family lives, however often it is refreshed
--
-- Reply:  {'ok', organization_id, scopes, expires, audience, key}
--             organization_id 16 bytes, scopes and audience separated by spaces,
--                                                   expires in ms since 1970; audience and key as in rotate_refresh.lua; key
--                                                   is that of the family
--         {'invalid_refresh_token'}
--         {'agent_suspended', since}  in ms since 1970
--         {'audience_not_held', audience}  of a family that none of the agent's tokens may be for any more
-- Writes: nothing
--@include drawn_at
--@include still_held
local agent, family = KEYS[1], KEYS[2]
local generation, token_family, lifetime = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

--@block now

--@read agent agent_revoked family_revoked=token_family agent_organization agent_scopes agent_epoch agent_restricted
--@read family family_generation family_scopes family_audience family_created family_epoch family_key
if agent_revoked or family_revoked or not agent_organization or not family_generation or generation < tonumber(family_generation)
  or family_epoch ~= agent_epoch then
  return {'invalid_refresh_token'}
end
local left = redis.call('PTTL', family)
if family_created then -- it was created so long after its id was drawn
  left = math.min(left, drawn_at(token_family, 8) + family_created + lifetime - now)
end
if left <= 0 then
  return {'invalid_refresh_token'}
end
--@block refuse_suspended
local scopes = family_scopes and still_held(family_scopes, agent_scopes) or agent_scopes
local audience = ''
--@block granted_audience
return {'ok', agent_organization, scopes, string.format('%d', now + left), audience, family_key or ''}
