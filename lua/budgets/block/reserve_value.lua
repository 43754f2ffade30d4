-- Reserves a root session's value in its organization's budget b, if it has one. reserved is now, as text, when it
-- did, else ''; noted whether a threshold was noted, as text.
-- Takes agent_id, audit, b, budget, events, looks, now, parts, session_id, value. Sets noted, reserved.
local reserved, noted = '', ''
if b then
  b.reserved, reserved = b.reserved + value, string.format('%.0f', now)
  write_organization_budget(budget, b, events, audit, now)
  noted = note_budget(events, audit, now, budget, b)
  redis.call('HSET', parts, session_id, part_of(agent_id, 0, value + 0, now))
  redis.call('ZADD', looks, string.format('%.0f', now), session_id)
  redis.call('PEXPIRE', parts, as_long_as_parts)
  redis.call('PEXPIRE', looks, as_long_as_parts)
end
