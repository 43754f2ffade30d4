-- Notes in the audit trail what is done near limits: of the agent (see block/count_by_limits.lua), and of the session, which after it
-- has used $actions and has used and held $value. Sets over to the first limit that would have refused it if nothing observed.
-- Takes agent, agent_limit, audit, crossed, events, flags, limit, max_n, max_v, now, observed_day, observed_minute, over, over_n,
-- over_p, over_v, restricted_after, session. Sets flags, over.
if agent_limit then
  note_agent_limit(agent, events, audit, now, agent_limit)
end
if restricted_after and (crossed or agent_limit) then
  note_agent_day(agent, events, audit, now, restricted_after)
end
flags = note_usage(session, events, audit, now, flags, $actions, max_n, $value, max_v, limit)
over = over or observed_day or observed_minute
if over then
  flags = note_observed(session, events, audit, now, flags, over_p, over_n, over_v, observed_day, observed_minute)
end
