-- Exchanges an agent's secret for a new refresh-token family, at generation 1.
--
-- KEYS[1] = agent        hash a:{cell}:<agent>
-- KEYS[2] = family       hash f:{cell}:<family>
-- KEYS[3] = events       stream ev:{cell}:<agent>
-- KEYS[4] = families     zset af:{cell}:<agent>
--
-- ARGV[1] = secret_hash  SHA-256 of the secret presented, 32 bytes
-- ARGV[2] = refresh_ttl  ms that a refresh token lives
-- ARGV[3] = lifetime     ms that a family lives, however often it is refreshed
-- ARGV[4] = family_id    16 bytes
-- ARGV[5] = scopes       that the family is narrowed to, separated by single spaces; '' for all that the agent has
-- ARGV[6] = audit        see include/audit.lua
--
-- Reply:  {'ok', organization_id, scopes}          organization_id 16 bytes, scopes separated by spaces
--         {'ok', organization_id, scopes, oldest}  the agent has too many families: these, an array of 14-byte members
--                                                  of the index, are to be ended
--         {'invalid_credentials'}                  no such agent, wrong secret or revoked; the reply does not say which
--         {'scope_not_held', scope}                the first scope that the agent does not have
-- Writes: HSET and PEXPIRE family; ZADD, PEXPIRE and ZREM families; HSET agent at the first use of a secret; HDEL agent
-- of marks that have lapsed; XADD events
-- Appends to an agent's audit trail: what happened, when, by whom and in which request. More follows in pairs of name
-- and value. audit is '<cap> <actor> <request id>': about how many events are kept; 'key' or 'agent'; the request's id.
local function record(events, audit, now, what, ...)
  local cap, actor, request = string.match(audit, '^(%d+) (%a+) (.*)$')
  redis.call('XADD', events, 'MAXLEN', '~', cap, '*', 'type', what, 'at', string.format('%.0f', now), 'actor', actor,
    'request', request, ...)
end
-- Returns the time, in ms since 1970 by the instance's clock, at which an id was drawn; its bytes begin at first.
local function drawn_at(text, first)
  local a, b, c, d, e, f = string.byte(text, first, first + 5)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end
-- Returns the score of a family in its agent's index: the time until which it may live, in seconds, plus 2^33 for each time that
-- all families of the agent were revoked, so that families of earlier epochs come first.
local function family_score(epoch, at)
  return string.format('%.0f', epoch * 8589934592 + math.ceil(at / 1000))
end
-- Writes into an agent's index until when a family may live: up to an eighth of refresh_ttl later than it ends. So a
-- refresh moves the entry only when such a period has begun since the last one.
local function index_family(families, member, epoch, now, refresh_ttl)
  local period = refresh_ttl / 8
  local ends = (math.floor(now / period) + 1) * period + refresh_ttl
  redis.call('ZADD', families, family_score(epoch, ends), member)
  redis.call('PEXPIRE', families, string.format('%.0f', refresh_ttl + 2 * period))
end
local agent, family, events, families = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local secret_hash, refresh_ttl, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local family_id, scopes, audit = ARGV[4], ARGV[5], ARGV[6]
local max_families = 10000 -- of one agent; an exchange beyond ends those that were not used for longest

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local agent_secret, previous_secret, previous_until, secret_used, agent_revoked, agent_organization, agent_scopes, agent_epoch =
  unpack(redis.call('HMGET', agent, 'secret', 'previous_secret', 'previous_until', 'secret_used', 'revoked', 'organization',
    'scopes', 'epoch'))
local current = secret_hash == agent_secret
local in_grace = secret_hash == previous_secret and now < tonumber(previous_until or 0)
if agent_revoked or not (current or in_grace) then
  return {'invalid_credentials'}
end
for scope in string.gmatch(scopes, '%S+') do
  if not string.find(' ' .. agent_scopes .. ' ', ' ' .. scope .. ' ', 1, true) then
    return {'scope_not_held', scope}
  end
end

-- Marks of revoked families outlive their access tokens by design. Each exchange checks a few, which keeps
-- their number in proportion to the live ones without ever walking over all of them. An agent has 12 fields of its own.
local looked_at = redis.call('HLEN', agent) > 12 and redis.call('HRANDFIELD', agent, 8) or {}

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
local since_drawn = string.format('%.0f', now - drawn_at(family_id, 1))
local fields = {'g', 1, 'r', string.format('%.0f', now), 'c', since_drawn}
if scopes == '' then
  scopes = agent_scopes
else
  fields[7], fields[8] = 'sc', scopes
end
if agent_epoch then
  fields[#fields + 1] = 'e'
  fields[#fields + 1] = agent_epoch
end
redis.call('HSET', family, unpack(fields))
redis.call('PEXPIRE', family, string.format('%.0f', math.min(refresh_ttl, lifetime)))
if #ended > 0 then
  redis.call('ZREM', families, unpack(ended))
end
if excess > 0 then
  oldest = redis.call('ZRANGE', families, 0, math.min(excess, 8) - 1)
end
index_family(families, string.sub(family_id, 1, 14), epoch, now, refresh_ttl)
if current and not secret_used then
  redis.call('HSET', agent, 'secret_used', 1)
end
for _, field in ipairs(looked_at) do
  if string.sub(field, 1, 7) == 'family:' and tonumber(redis.call('HGET', agent, field)) <= now then
    redis.call('HDEL', agent, field)
  end
end
record(events, audit, now, 'token.issued', 'family', string.sub(family, -36))
if excess > 0 then
  return {'ok', agent_organization, scopes, oldest}
end
return {'ok', agent_organization, scopes}
