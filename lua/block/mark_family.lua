-- Revokes a refresh-token family: it can no longer be refreshed, and the mark in its agent stops its access tokens.
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
redis.call('HSET', agent, revoked_family, string.format('%.0f', now + mark_ttl))
redis.call('DEL', family)
redis.call('ZREM', families, member)
