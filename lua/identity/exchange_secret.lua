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
-- ARGV[7] = audience     that the family is for, separated by single spaces, 'self' for the issuer; '' for the issuer alone
-- ARGV[8] = key          thumbprint of the key that the family is bound to (RFC 9449 §5), 32 bytes; '' for none
--
-- Arguments: two are times that the operator sets, and scripts keep no settings; three narrow what the secret gives.
--
-- Reply:  {'ok', scopes, ids}        scopes separated by spaces; ids: the organization's 16 bytes, and behind them, when the
--                                    agent has too many families, 14 bytes of each that is to be ended
--         {'invalid_credentials'}    no such agent, wrong secret or revoked; the reply does not say which
--         {'agent_suspended', since}  in ms since 1970
--         {'scope_not_held', scope}  the first scope that the agent does not have
--         {'audience_not_held', audience}  the first that the agent's tokens may not be for
--         {'proof_required'}         the agent's tokens must be bound to a key
-- Writes: HSET and PEXPIRE family; ZADD, PEXPIRE and ZREM families; HSET agent at the first use of a secret; HDEL agent
-- of marks that have lapsed; XADD events
--@joined
--@include audit
--@include drawn_at
--@include family_score
--@include index_family
local agent, family, events, families = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local secret_hash, refresh_ttl, lifetime = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local family_id, scopes, audit, audience, key = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]

--@block now

--@read agent agent_secret previous_secret previous_until secret_used agent_revoked agent_organization agent_scopes agent_epoch
--@  agent_restricted
--@block refuse_secret
--@block open_family
if current and not secret_used then
  redis.call('HSET', agent, 'secret_used', 1)
end
--@block drop_lapsed_marks
record(events, audit, now, 'token.issued', 'family', string.sub(family, -36))
return {'ok', scopes, agent_organization .. table.concat(oldest)}
