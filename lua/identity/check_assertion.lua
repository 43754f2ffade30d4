-- Authenticates an agent by an assertion that was verified (RFC 7523), which is used up by that.
--
-- KEYS[1] = agent          hash a:{cell}:<agent>
-- KEYS[2] = assertions     zset j:{cell}:<agent>
--
-- ARGV[1] = keys_version   of the keys that verified it, '' for the first ones
-- ARGV[2] = assertion      16 bytes of the SHA-256 of its jti
-- ARGV[3] = assertion_ttl  ms until no instance takes it any more
--
-- Reply:  {'ok'}
--         {'invalid_credentials'}  the agent is not live, or has used the assertion before; the reply does not say which
--         {'changed_meanwhile'}    the agent has other keys by now
--         {'too_many_assertions'}  the agent has used 10,000 that have not expired
-- Writes: ZADD, ZREM and PEXPIRE assertions
local agent, assertions = KEYS[1], KEYS[2]
local keys_version, assertion, assertion_ttl = ARGV[1], ARGV[2], ARGV[3]

--@block now

--@read agent agent_revoked agent_organization agent_keys_version
--@block refuse_assertion
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go: a client must be able to revoke
--@block keep_assertion
return {'ok'}
