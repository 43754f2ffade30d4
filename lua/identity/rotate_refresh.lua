-- Rotates a refresh token: spends the generation presented and opens the next.
-- The spent predecessor gets the same successor again within the grace time, because its answer may have been lost. A
-- generation further back is reuse and ends the family. One ahead of ours is genuine too (its signature was checked
-- before): Redis has lost its last write, and moves forward.
--
-- Two holders of the same token may take turns within the grace time. A client that lost an answer does not lose one after the
-- other, and processes that share a token refresh at once. So two generations in a row that are each presented again later
-- than that are reuse as well.
--
-- KEYS[1] = agent           hash a:{cell}:<agent>
-- KEYS[2] = family          hash f:{cell}:<family>
-- KEYS[3] = events          stream ev:{cell}:<agent>
-- KEYS[4] = families        zset af:{cell}:<agent>
--
-- ARGV[1] = generation      of the token presented
-- ARGV[2] = refresh_ttl     ms that a refresh token lives
-- ARGV[3] = grace           ms for which the predecessor gets its successor again
-- ARGV[4] = revoked_family  'family:' and the 16-byte family id: the field that marks it revoked
-- ARGV[5] = mark_ttl        ms that the mark must outlive, so that no access token of the family outlives it
-- ARGV[6] = lifetime        ms that a family lives, however often it is refreshed
-- ARGV[7] = scopes          that the new access token is narrowed to, separated by single spaces; '' for all
-- ARGV[8] = audit           see include/audit.lua
-- ARGV[9] = audience that the new access token is for, separated by single spaces, 'self' for the issuer; '' for the family's
-- ARGV[10] = key            thumbprint of the key that the new access token is bound to (RFC 9449 §5), 32 bytes; '' for none
--
-- Arguments: four are times that the operator sets or derives, and scripts keep no settings.
--
-- Reply:  {'ok', generation, replayed, scopes, audience, organization_id}  generation that the successor carries; replayed '1'
--                                    when the predecessor was answered again, else ''; audience of the new access token, as ARGV[9]
--         {'invalid_refresh_token'}  no such family, expired, revoked, or bound to another key
--         {'reused'}                 and the family is revoked
--         {'scope_not_held', scope}  the first scope that the family or its agent does not have
--         {'audience_not_held', audience}  the first that the family is not for, or its agent's tokens may not be for
--         {'agent_suspended', since}  in ms since 1970
--         {'proof_required'}         the agent's tokens must be bound to a key
-- Writes: HSET and PEXPIRE family, ZADD and PEXPIRE families now and then; or, on reuse, HSET agent, DEL family and ZREM
-- families; or, of a generation that is presented again the first time, and the first time late, HSET family; XADD events
--@joined
--@include audit
--@include drawn_at
--@include family_score
--@include index_family
--@include still_held
local agent, family, events, families = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local generation, refresh_ttl, grace = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local revoked_family, mark_ttl, lifetime = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local scopes, audit, audience, key = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local at_once = 10000 -- ms within which the predecessor may be presented again in every generation
local member = string.sub(revoked_family, 8, 21)

--@block now

--@read agent agent_revoked family_revoked=revoked_family agent_organization agent_scopes agent_epoch agent_restricted
--@read family family_generation issued family_scopes family_audience family_created family_epoch family_key
if agent_revoked or family_revoked or not agent_organization or not family_generation or family_epoch ~= agent_epoch then
  return {'invalid_refresh_token'}
end
-- Before its reuse is looked for: a thief with the token and without the key must not end the family.
if family_key and family_key ~= key then
  return {'invalid_refresh_token'}
end

-- family_created is how long after its id was drawn the family was created.
local lifetime_left = drawn_at(revoked_family, 8) + family_created + lifetime - now
if lifetime_left <= 0 then
  return {'invalid_refresh_token'}
end

local current, rotated = tonumber(family_generation), tonumber(issued)
local answer_was_lost = generation == current - 1 and now - rotated < grace
local late = answer_was_lost and now - rotated > at_once
local replayed, replayed_late -- the last generations that were presented again
if answer_was_lost then
  --@read family family_replayed family_replayed_late
  replayed, replayed_late = family_replayed, family_replayed_late
end
local late_in_a_row = late and tonumber(replayed_late or -1) == generation - 1
if generation < current and not answer_was_lost or late_in_a_row then
  --@block mark_family
  record(events, audit, now, 'token.reuse_detected', 'family', string.sub(family, -36))
  return {'reused'}
end

--@block refuse_suspended
local held = family_scopes and still_held(family_scopes, agent_scopes) or agent_scopes
--@block hold_scopes held=held
--@block require_key
if scopes == '' then
  scopes = held
end
--@block granted_audience
if answer_was_lost then
  local presented = ARGV[1]
  if replayed ~= presented or (late and replayed_late ~= presented) then
    redis.call('HDEL', family, '') -- goes on when Redis is full, see lua.go
    redis.call('HSET', family, 'p', presented)
    if late then
      redis.call('HSET', family, 'l', presented)
    end
    record(events, audit, now, 'token.replayed', 'family', string.sub(family, -36), 'spent', issued)
  end
  return {'ok', family_generation, '1', scopes, audience, agent_organization}
end

local successor = string.format('%d', generation + 1)
local period = refresh_ttl / 8
redis.call('HSET', family, 'g', successor, 'r', string.format('%d', now))
redis.call('PEXPIRE', family, string.format('%d', math.min(refresh_ttl, lifetime_left)))
if not family_created or math.floor(rotated / period) ~= math.floor(now / period) then
  index_family(families, member, tonumber(agent_epoch or 0), now, refresh_ttl)
end
record(events, audit, now, 'token.refreshed', 'family', string.sub(family, -36))
return {'ok', successor, '', scopes, audience, agent_organization}
