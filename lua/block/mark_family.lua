-- Revokes a refresh-token family: it cannot be refreshed any more, and the agent's field revoked_family stops its access tokens.
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', agent, revoked_family, string.format('%d', now + mark_ttl))
redis.call('DEL', family)
redis.call('ZREM', families, member)
