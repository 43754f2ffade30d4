-- Notes in the audit trail what is done near limits: of the agent (see block/count_by_limits.lua), and of the session, which after it
-- has used $actions and has used and held $value. Sets over to the first limit that would have refused it if nothing observed.
-- Takes agent, audit, crossed, events, flags, limit, limited, max_n, max_v, now, over, over_day, over_minute, over_n, over_p, over_v,
-- restricted_after, session. Sets flags, over.
if limited then
  note_agent_limit(agent, events, audit, now, limited)
end
if restricted_after and (crossed or limited) then
  note_agent_day(agent, events, audit, now, restricted_after)
end
flags = note_usage(session, events, audit, now, flags, $actions, max_n, $value, max_v, limit)
over = over or over_day or over_minute
if over then
  flags = note_observed(session, events, audit, now, flags, over_p, over_n, over_v, over_day, over_minute)
end
