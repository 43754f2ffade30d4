-- Refuses a session that is not active. The first time that it is observed expired, the audit trail notes that.
-- Takes agent_revoked, audit, ended_at, events, expires_at, flags, now, session.
if ended_at or agent_revoked or now >= tonumber(expires_at) then
  if not ended_at and not agent_revoked then
    note_expired(session, events, audit, now, flags)
  end
  return {'not_active', ended_at or '', agent_revoked or '', expires_at, string.format('%d', now)}
end
