-- Reads a session and what its status depends on. It may note an expiry in the audit trail; no caller requested that,
-- so a lost answer leaves nothing in doubt.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = session          hash s:{cell}:<session>
-- KEYS[3] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the caller
-- ARGV[2] = agent_id         16 bytes
-- ARGV[3] = caller_family    'family:' and the 16-byte family id of the access token; '' when an API key calls
-- ARGV[4] = audit            see include/audit.lua
--
-- Reply:  {'ok', now, revoked, scopes, leased_value, longest_lease, suspended_since, suspension_reason, restrictions,
--             observed_refusals, per_action_limit, delegated_actions, delegated_value, parent, noted_flags, '', used_actions,
--             actions_limit, used_value, value_limit, held_value, expires_at, ended_at, created, own_scopes, total_overage,
--             refunds, metadata}
--             now and revoked in ms since 1970 ('' for an agent that is not revoked); scopes of the agent; then what
--             block/session_state.lua reads, but for the agent; created in ms since the time that the session's id carries
--         {'unknown_agent'}
--         {'invalid_token'}                      the access token's agent or family is revoked
--         {'unknown_session'}
--         {'damaged'}      the agent has no field of scopes, not even an empty one
--         {'holds_due'}    nothing was done: release_holds.lua goes first
-- Writes: nothing that was requested; when it first observes the expiry, HSET session and XADD events
--@joined
local agent, session, events = KEYS[1], KEYS[2], KEYS[3]
local organization_id, agent_id, caller_family, audit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

--@block now
--@block either_caller_with_scopes session=session

--@read session session_agent used_actions actions_limit used_value value_limit held_value expires_at ended_at created own_scopes
--@  total_overage refunds metadata leased_value longest_lease noted_flags
--@block refuse_unknown_session
if not agent_scopes then
  return {'damaged'}
end
local restrictions
if held_value then
  --@read session session_holds_due session_restrictions
  if now >= (session_holds_due or now + 1) + 0 then
    return {'holds_due'}
  end
  restrictions = session_restrictions
end
if not ended_at and not agent_revoked and now >= (expires_at or now + 1) + 0 then
  --@include audit
  --@include flags
  note_expired(session, events, audit, now, noted_flags or '')
end
if restrictions then
  --@read session suspended_since suspension_reason observed_refusals per_action_limit delegated_actions delegated_value parent
  return {'ok', string.format('%d', now), agent_revoked, agent_scopes, leased_value, longest_lease, suspended_since,
    suspension_reason,
    restrictions, observed_refusals, per_action_limit, delegated_actions, delegated_value, parent, noted_flags, '', used_actions,
    actions_limit, used_value, value_limit, held_value, expires_at, ended_at, created, own_scopes, total_overage, refunds, metadata}
end
return {'ok', string.format('%d', now), agent_revoked, agent_scopes, leased_value, longest_lease, '', '', '', '', '', '', '', '',
  noted_flags, '', used_actions, actions_limit, used_value, value_limit, held_value, expires_at, ended_at, created, own_scopes,
  total_overage, refunds, metadata}
