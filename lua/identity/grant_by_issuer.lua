-- Grants an agent an access token because of a token from an issuer that its organization trusts, which was verified. The
-- family that the access token names is never stored: there is no refresh token.
--
-- KEYS[1] = agent            hash a:{cell}:<agent>
-- KEYS[2] = events           stream ev:{cell}:<agent>
--
-- ARGV[1] = organization_id  16 bytes, of the organization that trusts the issuer
-- ARGV[2] = scopes           that the access token is narrowed to, separated by single spaces; '' for all that the agent has
-- ARGV[3] = audience         that it is for, separated by single spaces, 'self' for the issuer; '' for the issuer alone
-- ARGV[4] = audit            see include/audit.lua
-- ARGV[5] = drawn            id that was drawn for it, as text; see include/in_epoch.lua
-- ARGV[6] = issuer           the trusted issuer, as text
-- ARGV[7] = key              thumbprint of the key that it is bound to (RFC 9449 §5), 32 bytes; '' for none
--
-- Arguments: three narrow what the agent has, and two are for the audit trail.
--
-- Reply:  {'ok', scopes, family}     scopes separated by spaces; family: the id that it names, as text
--         {'invalid_credentials'}    the organization has no such agent, or it is revoked; the reply does not say which
--         {'agent_suspended', since}  in ms since 1970
--         {'scope_not_held', scope}  the first scope that the agent does not have
--         {'audience_not_held', audience}  the first that the agent's tokens may not be for
--         {'proof_required'}         the agent's tokens must be bound to a key
-- Writes: XADD events; HDEL agent of marks that have lapsed
--@joined
--@include audit
--@include in_epoch
local agent, events = KEYS[1], KEYS[2]
local organization_id, scopes, audience, audit, drawn, issuer, key = unpack(ARGV)

--@block now

--@read agent agent_organization agent_revoked agent_scopes agent_restricted agent_epoch
if agent_organization ~= organization_id or agent_revoked then
  return {'invalid_credentials'}
end
--@block refuse_suspended
--@block hold_scopes held=agent_scopes
--@block hold_audience
--@block require_key
local family = in_epoch(drawn, agent_epoch)
record(events, audit, now, 'token.issued', 'family', family, 'issuer', issuer)
--@block drop_lapsed_marks
return {'ok', scopes == '' and agent_scopes or scopes, family}
