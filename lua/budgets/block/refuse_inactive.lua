-- Refuses a session that is not active. The first time that it is observed expired, the audit trail notes that.
if e or agent_revoked or now >= tonumber(x) then
  if not e and not agent_revoked then
    note(session, events, audit, now, flags, 'x', 'session.expired')
  end
  return {'not_active', e or '', agent_revoked or '', x, string.format('%d', now)}
end
