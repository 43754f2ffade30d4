package records

import (
	"slices"

	"remit/server/internal/web"
)

// eventTypes are the types of events, in the order of the API's description.
var eventTypes = []string{
	"agent.created", "agent.changed", "agent.suspended", "agent.resumed", "agent.revoked", "agent.secret_rotated",
	"agent.families_revoked", "agent.limit_reached", "token.issued", "token.refreshed", "token.revoked", "token.replayed",
	"token.reuse_detected", "session.created", "session.limits_changed", "session.limit_warning", "session.limit_reached",
	"session.would_refuse", "session.suspended", "session.resumed", "session.ended", "session.expired", "session.delegated",
	"session.child_closed", "session.more_requested", "session.request_approved", "session.request_denied",
	"session.key_created", "session.key_deleted", "transaction.begun",
	"transaction.hold_changed", "transaction.committed", "transaction.rolled_back", "transaction.expired", "lease.granted",
	"lease.settled", "lease.expired", "budget.threshold", "budget.period_ended", "events.lost",
}

const maxEventTypes = 64 // of a webhook

// CheckEventTypes checks a choice of event types.
func CheckEventTypes(v *web.Validation, field string, types []string) {
	v.Require(len(types) <= maxEventTypes, field, "must have at most 64 types")
	seen := map[string]bool{}
	for _, t := range types {
		v.Require(slices.Contains(eventTypes, t), field, "has a type that does not exist: "+web.Shown(t))
		v.Require(!seen[t], field, "has a type twice: "+web.Shown(t))
		seen[t] = true
	}
}
