-- Extends a key's TTL to at least kept ms from now, and never shortens it. ttl is the same number as text.
-- Takes kept, ttl.
if redis.call('PTTL', $key) < kept then
  redis.call('PEXPIRE', $key, ttl)
end
