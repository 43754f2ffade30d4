-- Revokes a refresh-token family: it cannot be refreshed any more, and the agent's field revoked_family stops its access tokens;
-- a field of its own those that are bound to a key (block/refuse_unbound.lua).
-- Takes agent, families, family, mark_ttl, member, now, revoked_family. Sets marked_until.
redis.call('HDEL', agent, '') -- goes on when Redis is full, see lua.go
local marked_until = string.format('%d', now + mark_ttl)
redis.call('HSET', agent, revoked_family, marked_until, 'bound:' .. string.sub(revoked_family, 8), marked_until)
redis.call('DEL', family)
redis.call('ZREM', families, member)
