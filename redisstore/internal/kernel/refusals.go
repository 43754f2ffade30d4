package kernel

import (
	"cmp"

	"remit/internal/redisclient"
)

// SharedRefusals maps reply codes of scripts to their errors, except ok, outcome, and those of
// package redisstore (limiterrors.go) and of package feed (scripts.go).
var SharedRefusals = redisclient.Refusals{
	"invalid_api_key":       refuse(ErrInvalidAPIKey),
	"successor_used":        refuse(ErrSuccessorUsed),
	"unknown_api_key":       refuse(ErrUnknownAPIKey),
	"last_admin_key":        refuse(ErrLastAdminKey),
	"invalid_token":         refuse(ErrInvalidToken),
	"invalid_credentials":   refuse(ErrInvalidCredentials),
	"invalid_refresh_token": refuse(ErrInvalidRefreshToken),
	"reused":                refuse(ErrTokenReused),
	"proof_required":        refuse(ErrProofRequired),
	"proof_used":            refuse(ErrProofUsed),
	"too_many_marks":        refuse(ErrManyMarks),
	"too_many_proofs":       refuse(ErrManyProofs),
	"too_many_assertions":   refuse(ErrManyAssertions),
	"unknown_agent":         refuse(ErrUnknownAgent),
	"unknown_family":        refuse(ErrUnknownFamily),
	"unknown_session":       refuse(ErrUnknownSession),
	"unknown_transaction":   refuse(ErrUnknownTransaction),
	"unknown_lease":         refuse(ErrUnknownLease),
	"unknown_request":       refuse(ErrUnknownRequest),
	"unknown_session_key":   refuse(ErrUnknownSessionKey),
	"many_session_keys":     refuse(ErrManySessionKeys),
	"unbound_session_key":   refuse(ErrUnboundSessionKey),
	"request_decided":       refuse(ErrRequestDecided),
	"unknown_webhook":       refuse(ErrUnknownWebhook),
	"unknown_issuer":        refuse(ErrUnknownIssuer),
	"issuer_exists":         refuse(ErrIssuerExists),
	"claimed":               refuse(ErrWebhooksClaimed),
	"changed_meanwhile":     refuse(ErrChangedMeanwhile),
	"lease_settled":         refuse(ErrLeaseSettled),
	"not_reversible":        refuse(ErrNotReversible),
	"held_by_gateway":       refuse(ErrHeldByGateway),
	"key_reused":            refuse(ErrIdempotencyKeyReused),
	"no_outcome":            refuse(ErrNoOutcome),
	"given_up":              refuse(ErrGivenUp),
	"stale":                 refuse(ErrStale),
	"beyond_parent":         refuse(ErrBeyondParent),
	"no_budget":             refuse(ErrNoBudget),
	"token_lacks_scope":     refuse(ErrTokenLacksScope),
	"holds_due":             refuse(ErrHoldsDue),
	"agent_holds_due":       refuse(ErrAgentHoldsDue),
	"agent_revoked":         refuse(ErrAgentRevoked),
	"unknown_organization":  refuse(ErrUnknownOrganization),
	"being_deleted":         refuse(ErrBeingDeleted),
	"unknown_key":           refuse(ErrUnknownKey),
	"damaged":               refuse(redisclient.ErrReply),
	"key_in_use":            refuse(ErrKeyInUse),
	"parent_enforces":       refuse(ErrParentEnforces),
	"insufficient_role":     func(r *redisclient.Reply) error { return OrBroken(r, &RoleError{RoleAt(r, 0)}) },
	"scope_not_held":        func(r *redisclient.Reply) error { return OrBroken(r, &ScopeError{Scope: r.Rest(0)}) },
	"audience_not_held":     func(r *redisclient.Reply) error { return OrBroken(r, &AudienceError{Audience: r.Rest(0)}) },
	"agent_suspended":       func(r *redisclient.Reply) error { return OrBroken(r, &AgentSuspendedError{r.Time(0)}) },
	"session_suspended":     func(r *redisclient.Reply) error { return OrBroken(r, &SessionSuspendedError{r.Time(0)}) },
	"over_quota": func(r *redisclient.Reply) error {
		return OrBroken(r, &QuotaError{Quota: r.Text(0), Used: r.Number(1), Max: r.Number(2)})
	},
	"budget_exhausted": func(r *redisclient.Reply) error {
		return OrBroken(r, &BudgetError{Remaining: MoneyAt(r, 0), Resets: r.TimeOrZero(1)})
	},
	"above_bounds": func(r *redisclient.Reply) error { return OrBroken(r, &AboveBoundsError{Limit: r.Text(0)}) },
}

func refuse(err error) func(*redisclient.Reply) error {
	return func(*redisclient.Reply) error { return err }
}

// OrBroken returns the refusal, or the reply's error if reading the refusal failed.
func OrBroken(r *redisclient.Reply, refusal error) error {
	return cmp.Or(r.Err, refusal)
}
