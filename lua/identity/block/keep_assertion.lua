-- Keeps an assertion as used until it has expired, and drops some that have: each may drop more than it adds, so few of them are
-- left behind.
-- Takes assertion, assertion_ttl, assertions, now. Sets kept, lapsed, ttl.
local lapsed = redis.call('ZRANGEBYSCORE', assertions, '-inf', string.format('%d', now), 'LIMIT', 0, 16)
if #lapsed > 0 then
  redis.call('ZREM', assertions, unpack(lapsed))
end
redis.call('ZADD', assertions, string.format('%d', now + assertion_ttl), assertion)
local kept, ttl = tonumber(assertion_ttl), string.format('%d', assertion_ttl)
--@block extend_ttl key=assertions
