package redisstore

import (
	"remit/internal/redisclient"
)

// refusals maps every reply code of a script to its error, except ok and outcome.
var refusals = redisclient.Refusals{
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
	"request_decided":       refuse(ErrRequestDecided),
	"unknown_webhook":       refuse(ErrUnknownWebhook),
	"unknown_issuer":        refuse(ErrUnknownIssuer),
	"issuer_exists":         refuse(ErrIssuerExists),
	"claimed":               refuse(ErrWebhooksClaimed),
	"changed_meanwhile":     refuse(ErrChangedMeanwhile),
	"lease_settled":         refuse(ErrLeaseSettled),
	"not_reversible":        refuse(ErrNotReversible),
	"key_reused":            refuse(ErrIdempotencyKeyReused),
	"no_outcome":            refuse(errNoOutcome),
	"given_up":              refuse(errGivenUp),
	"stale":                 refuse(errStale),
	"beyond_parent":         refuse(errBeyondParent),
	"no_budget":             refuse(ErrNoBudget),
	"token_lacks_scope":     refuse(ErrTokenLacksScope),
	"holds_due":             refuse(errHoldsDue),
	"agent_holds_due":       refuse(errAgentHoldsDue),
	"agent_limit":           refuseAgentLimit,
	"agent_revoked":         refuse(ErrAgentRevoked),
	"unknown_organization":  refuse(ErrUnknownOrganization),
	"being_deleted":         refuse(ErrBeingDeleted),
	"unknown_key":           refuse(ErrUnknownKey),
	"damaged":               refuse(errReply),
	"key_in_use":            refuse(ErrKeyInUse),
	"parent_enforces":       refuse(ErrParentEnforces),
	"feed_lost":             refuse(errFeedLost),
	"rotation_pending": func(r *reply) error {
		return orBroken(r, &PendingKeyError{ID: r.Text(0), SignsFrom: r.Time(1)})
	},
	"insufficient_role": func(r *reply) error { return orBroken(r, &RoleError{roleAt(r, 0)}) },
	"scope_not_held":    func(r *reply) error { return orBroken(r, &ScopeError{Scope: r.Rest(0)}) },
	"audience_not_held": func(r *reply) error { return orBroken(r, &AudienceError{Audience: r.Rest(0)}) },
	"not_active":        refuseNotActive,
	"agent_suspended":   func(r *reply) error { return orBroken(r, &AgentSuspendedError{r.Time(0)}) },
	"session_suspended": func(r *reply) error { return orBroken(r, &SessionSuspendedError{r.Time(0)}) },
	"not_pending": func(r *reply) error {
		status := transactionStatus(Status(r.Text(3)), transactionEvents{r.Time(0), r.Text(1), r.Time(2)})
		return orBroken(r, &NotPendingError{status})
	},
	"below_usage": func(r *reply) error {
		return orBroken(r, &BelowUsageError{Limit: r.Text(0), Usage: usageAt(r, 1)})
	},
	"over_quota": func(r *reply) error {
		return orBroken(r, &QuotaError{Quota: r.Text(0), Used: r.Number(1), Max: r.Number(2)})
	},
	"budget_exhausted": func(r *reply) error {
		return orBroken(r, &BudgetError{Remaining: moneyAt(r, 0), Resets: r.TimeOrZero(1)})
	},
	"budget_below_usage": func(r *reply) error {
		return orBroken(r, &BudgetBelowUsageError{Reserved: moneyAt(r, 0), Used: moneyAt(r, 1)})
	},
	"above_bounds": func(r *reply) error { return orBroken(r, &AboveBoundsError{Limit: r.Text(0)}) },
	"limit": func(r *reply) error {
		return orBroken(r, &LimitError{Limit: r.Text(0), Usage: usageAt(r, 1)})
	},
}

func refuse(err error) func(*reply) error { return func(*reply) error { return err } }

func refuseNotActive(r *reply) error {
	status := statusAt(r.Time(3), lifeEvents{ended: r.TimeOrZero(0), revoked: r.TimeOrZero(1), expires: r.Time(2)})
	return orBroken(r, &NotActiveError{status})
}

// orBroken returns the refusal, or the reply's error if reading the refusal failed.
func orBroken(r *reply, refusal error) error {
	if r.Err != nil {
		return r.Err
	}
	return refusal
}
