-- Extends a key's TTL to at least kept ms from now, and never shortens it. ttl is the same number as text.
if redis.call('PTTL', $key) < kept then
  redis.call('PEXPIRE', $key, ttl)
end
