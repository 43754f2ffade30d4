-- Grants leases. A lease counts whole in its session's used_actions and used_value from its grant until it is settled, so
-- nothing that is lost or late can let more be spent than the limits. How much of used_value is leased, and neither settled nor
-- expired, stands in leased_value: only what is shown depends on it. A session has leased_value, held_value and holds_due while
-- one of its leases is open. Returns the actions, the value in micro-USD and the ms that a lease may have of a session s with
-- this many open ones; or nil and the limit that refuses it. With partial it is as much of each as fits. A session that
-- observes gives all of it; then the limit that would have refused it comes fourth.
local function fit(s, now, open, wanted_n, wanted_v, lifetime, partial)
  local longest, rest = (s.longest_lease or 0) * 1000, s.expires_at - now
  if longest == 0 or (lifetime > longest and not partial) then
    return nil, 'max_lease_seconds'
  elseif math.min(lifetime, longest) > rest and not partial then
    return nil, 'expires_at'
  elseif open >= 100 then
    return nil, 'max_open_leases'
  end
  local got_n = math.min(wanted_n, math.max(s.actions_limit - s.used_actions, 0))
  local got_v = math.min(wanted_v, math.max(s.value_limit - s.used_value - s.held_value, 0))
  local over
  if got_n < wanted_n and not (partial and got_n > 0) then
    over = 'max_actions'
  elseif (got_v < wanted_v and not (partial and got_v > 0)) or s.used_value + s.held_value > s.value_limit then
    over = name_of_value_limit(s.refunds, s.value_limit)
  end
  if observes(s.restrictions, s.used_actions + wanted_n, s.used_value + s.held_value + wanted_v, s.actions_limit,
    s.value_limit) then
    got_n, got_v = wanted_n, wanted_v
  elseif over then
    return nil, over
  end
  return got_n, got_v, math.min(lifetime, longest, rest), over
end

-- Notes in the audit trail that a session has no room for a lease; returns the flags after it.
local function note_no_room(session, events, audit, now, flags, limit)
  if limit == 'max_actions' then
    return note(session, events, audit, now, flags, 'N', 'session.limit_reached', 'limit', limit)
  elseif limit == 'max_value_usd' or limit == 'max_committed_usd' then
    return note(session, events, audit, now, flags, 'V', 'session.limit_reached', 'limit', limit)
  end
  return flags
end

-- Notes a lease that limits would have refused, in a session that observes; each is a name, or nil or false for one that it fits.
local function note_observed_lease(session, events, audit, now, flags, over, observed_day, observed_minute)
  if not (over or observed_day or observed_minute) then
    return flags
  end
  count_observed(session, 1)
  return note_observed(session, events, audit, now, flags, over or false, observed_day, observed_minute)
end

-- Writes a lease that fits, and returns its actions, value and expiry as text. The caller counts it in its session.
local function grant(session, leases, lease, events, audit, now, retention, agent_id, session_id, lease_id, got_n, got_v, lifetime)
  local n, v = string.format('%.0f', got_n), string.format('%.0f', got_v)
  local created, expires = string.format('%.0f', now), string.format('%.0f', now + lifetime)
  redis.call('HSET', lease, 'a', agent_id, 's', session_id, 'n', n, 'v', v, 'b', created, 'x', expires)
  redis.call('PEXPIRE', lease, string.format('%.0f', lifetime + retention))
  redis.call('ZADD', leases, expires, open_lease(lease_id, n, v))
  redis.call('PEXPIRE', leases, string.format('%.0f', math.max(redis.call('PTTL', session), lifetime + retention)))
  record(events, audit, now, 'lease.granted', 'session', string.sub(session, -36), 'lease', lease_id, 'actions', n,
    'leased', v, 'expires', expires)
  return n, v, expires
end
