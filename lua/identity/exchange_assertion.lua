-- Exchanges an agent's assertion that was verified (RFC 7523) for a new refresh-token family, at generation 1. The assertion is
-- used up by that, and not by a refusal.
--
-- KEYS[1] = agent          hash a:{cell}:<agent>
-- KEYS[2] = family         hash f:{cell}:<family>
-- KEYS[3] = events         stream ev:{cell}:<agent>
-- KEYS[4] = families       zset af:{cell}:<agent>
-- KEYS[5] = assertions     zset j:{cell}:<agent>
--
-- ARGV[1] = keys_version   of the keys that verified it, '' for the first ones
-- ARGV[2] = assertion      16 bytes of the SHA-256 of its jti
-- ARGV[3] = assertion_ttl  ms until no instance takes it any more
-- ARGV[4] = refresh_ttl    ms that a refresh token lives
-- ARGV[5] = lifetime       ms that a family lives, however often it is refreshed
-- ARGV[6] = family_id      16 bytes
-- ARGV[7] = scopes         that the family is narrowed to, separated by single spaces; '' for all that the agent has
-- ARGV[8] = audit          see include/audit.lua
-- ARGV[9] = audience       that the family is for, separated by single spaces, 'self' for the issuer; '' for the issuer alone
-- ARGV[10] = key           thumbprint of the key that the family is bound to (RFC 9449 §5), 32 bytes; '' for none
--
-- Arguments: three are the assertion, the others as in exchange_secret.lua.
--
-- Reply:  {'ok', scopes, ids}        as exchange_secret.lua
--         {'invalid_credentials'}    the agent is not live, or has used the assertion before; the reply does not say which
--         {'changed_meanwhile'}      the agent has other keys by now
--         {'too_many_assertions'}    the agent has used 10,000 that have not expired
--         {'agent_suspended', since}  in ms since 1970
--         {'scope_not_held', scope}  the first scope that the agent does not have
--         {'audience_not_held', audience}  the first that the agent's tokens may not be for
--         {'proof_required'}         the agent's tokens must be bound to a key
-- Writes: HSET and PEXPIRE family; ZADD, PEXPIRE and ZREM families and assertions; HDEL agent of marks that have lapsed; XADD events
--@joined
--@include audit
--@include drawn_at
--@include family_score
--@include index_family
local agent, family, events, families, assertions = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local keys_version, assertion, assertion_ttl, refresh_ttl, lifetime = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local family_id, scopes, audit, audience, key = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]

--@block now

--@read agent agent_revoked agent_organization agent_scopes agent_epoch agent_restricted agent_keys_version
--@block refuse_assertion
--@block open_family
--@block keep_assertion
--@block drop_lapsed_marks
record(events, audit, now, 'token.issued', 'family', string.sub(family, -36))
return {'ok', scopes, agent_organization .. table.concat(oldest)}
