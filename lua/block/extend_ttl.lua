-- Keeps a key for at least kept ms from now, and never shortens its TTL; ttl is kept as text.
if redis.call('PTTL', $key) < kept then
  redis.call('PEXPIRE', $key, ttl)
end
