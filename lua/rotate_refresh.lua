-- Rotates a refresh token: spends the generation presented and opens the next.
-- The spent predecessor gets the same successor again within the grace time, for its answer may have been lost. A
-- generation further back is reuse and ends the family. One ahead of ours is genuine too (its signature was checked
-- before): Redis has lost its last write, and moves forward.
--
-- KEYS[1] = agent           hash a:{cell}:<agent>
-- KEYS[2] = family          hash f:{cell}:<family>
-- KEYS[3] = events          stream ev:{cell}:<agent>
--
-- ARGV[1] = generation      of the token presented
-- ARGV[2] = refresh_ttl     ms that a refresh token lives
-- ARGV[3] = grace           ms for which the predecessor is answered again
-- ARGV[4] = revoked_family  'family:' and the 16-byte family id: the field that marks it revoked
-- ARGV[5] = mark_ttl        ms that the mark must outlive, so that no access token of the family outlives it
-- ARGV[6] = scopes          that the new access token is narrowed to, separated by single spaces; '' for all
-- ARGV[7] = audit           see include/audit.lua
--
-- Reply:  {'ok', generation, organization_id, scopes}  generation that the successor carries
--         {'invalid_refresh_token'}                     no such family, expired, or revoked
--         {'reused'}                                    and the family is revoked
--         {'scope_not_held', scope}                     the first scope that the family does not have
-- Writes: HSET and PEXPIRE family; or, on reuse, HSET agent and DEL family; XADD events
--@include audit
local agent, family, events = KEYS[1], KEYS[2], KEYS[3]
local generation, refresh_ttl, grace = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local revoked_family, mark_ttl, scopes, audit = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local holder = redis.call('HMGET', agent, 'revoked', revoked_family, 'organization', 'scopes')
local stored = redis.call('HMGET', family, 'g', 'r', 'sc')
if holder[1] or holder[2] or not holder[3] or not stored[1] then
  return {'invalid_refresh_token'}
end

local current, rotated = tonumber(stored[1]), tonumber(stored[2])
local answer_was_lost = generation == current - 1 and now - rotated < grace
if generation < current and not answer_was_lost then
  redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
  redis.call('HSET', agent, revoked_family, string.format('%.0f', now + mark_ttl))
  redis.call('DEL', family)
  record(events, audit, now, 'token.reuse_detected', 'family', string.sub(family, -36))
  return {'reused'}
end

local held = stored[3] or holder[4]
for scope in string.gmatch(scopes, '%S+') do
  if not string.find(' ' .. held .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end
if scopes == '' then
  scopes = held
end
if answer_was_lost then
  return {'ok', stored[1], holder[3], scopes}
end

local successor = string.format('%.0f', generation + 1)
redis.call('HSET', family, 'g', successor, 'r', string.format('%.0f', now))
redis.call('PEXPIRE', family, refresh_ttl)
record(events, audit, now, 'token.refreshed', 'family', string.sub(family, -36))
return {'ok', successor, holder[3], scopes}
