// Package event is an event of an audit trail: what it says, how a trail stores it, and its JSON, which the API answers and the
// feed of an organization stores. The hashes of a feed, and the signatures over them, are of exactly these bytes.
package event

import (
	"cmp"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"remit/money"
)

// Event is one entry of an agent's audit trail: a change, written by the script that made it.
type Event struct {
	ID          string    `json:"id"`   // opaque; later events of the agent have greater ones
	Type        string    `json:"type"` // as in docs/api.md: session.created, …
	Time        Timestamp `json:"occurred_at"`
	Agent       uuid.UUID `json:"agent_id,omitzero"` // absent for the organization itself
	Actor       Actor     `json:"actor"`
	Request     string    `json:"request_id,omitzero"`
	Session     uuid.UUID `json:"session_id,omitzero"`
	Transaction uuid.UUID `json:"transaction_id,omitzero"`
	Family      uuid.UUID `json:"family_id,omitzero"`
	Lease       uuid.UUID `json:"lease_id,omitzero"`
	Asked       uuid.UUID `json:"session_request_id,omitzero"` // a request for more
	Child       uuid.UUID `json:"child_session_id,omitzero"`   // of the session
	Issuer      uuid.UUID `json:"trusted_issuer_id,omitzero"`  // whose token was exchanged
	SessionKey  uuid.UUID `json:"session_key_id,omitzero"`     // that was created or deleted
	Data        `json:"data,omitzero"`

	Lasts time.Duration `json:"-"` // of a transaction that was begun: how long it may be pending, in whole seconds; else 0
}

// Actor made the request of an event. Time makes none: what it has brought names no request, not even the first that finds it.
type Actor struct {
	Type string    `json:"type"`        // ByKey, ByAgent, BySessionKey, ByTime or ByGateway
	ID   uuid.UUID `json:"id,omitzero"` // of the organization; of the agent, or of the one that acts for it with a delegated token; of the session key; none of time, nor of the gateway
}

// The types of an Actor.
const (
	ByKey        = "api_key" // of the organization
	ByAgent      = "agent"
	BySessionKey = "session_key"
	ByTime       = "time"    // something expired, or a period ended
	ByGateway    = "gateway" // it settled a transaction that it holds, or gave it more time
)

// Data is what changed. A field is nil or zero if the event does not contain it.
type Data struct {
	Limit           string          `json:"limit,omitzero"` // max_actions, max_value_usd or max_committed_usd
	MaxActions      *int64          `json:"max_actions,omitzero"`
	AddActions      *int64          `json:"add_actions,omitzero"` // asked for, or granted
	MaxLease        *int64          `json:"max_lease_seconds,omitzero"`
	Actions         *int64          `json:"action_count,omitzero"`    // of a lease: granted, spent or expired
	OverageActions  *int64          `json:"overage_actions,omitzero"` // of a lease
	MaxValue        *money.MicroUSD `json:"max_value_usd,omitzero"`
	AddValue        *money.MicroUSD `json:"add_value_usd,omitzero"`
	MaxCommitted    *money.MicroUSD `json:"max_committed_usd,omitzero"`
	Held            *money.MicroUSD `json:"value_held_usd,omitzero"`
	Leased          *money.MicroUSD `json:"value_leased_usd,omitzero"`
	Delegated       *money.MicroUSD `json:"value_delegated_usd,omitzero"`
	Released        *money.MicroUSD `json:"value_released_usd,omitzero"`
	Charged         *money.MicroUSD `json:"value_usd,omitzero"`
	Overage         *money.MicroUSD `json:"overage_usd,omitzero"`
	Late            bool            `json:"late,omitzero"`       // a commit after the transaction had expired
	SettledBy       string          `json:"settled_by,omitzero"` // a commit: expiry, when the hold was spent because it expired
	Expires         Timestamp       `json:"expires_at,omitzero"`
	PeriodStarted   Timestamp       `json:"period_started_at,omitzero"` // of a budget, the period that has ended
	PreviousExpires Timestamp       `json:"previous_expires_at,omitzero"`
	Spent           Timestamp       `json:"spent_at,omitzero"`
	Reason          string          `json:"reason,omitzero"`      // of a suspension or its end
	Changed         []string        `json:"changed,omitzero"`     // of an agent: name, scopes, description, metadata, audiences, jwks, jwks_uri, dpop_required, limits
	Enforcement     string          `json:"enforcement,omitzero"` // of a session, when it is set: enforce or observe
	MaxPerAction    *money.MicroUSD `json:"max_value_usd_per_action,omitzero"`
	Limits          *AgentLimits    `json:"limits,omitzero"`     // of the agent, after the change
	PreState        jsontext.Value  `json:"pre_state,omitzero"`  // of a transaction, in the feed only
	Budget          string          `json:"budget,omitzero"`     // whose threshold it is: session, agent_day or organization
	Threshold       int64           `json:"threshold,omitzero"`  // percent
	Thresholds      []int           `json:"thresholds,omitzero"` // of a session, when they are set
}

// AgentLimits bound what an agent does in all its sessions together. A nil limit is none.
type AgentLimits struct {
	ValuePerDay      *money.MicroUSD `json:"max_value_usd_per_day"`  // by UTC day of Redis's clock
	ActionsPerMinute *int64          `json:"max_actions_per_minute"` // so many at once, then one more every 60 s divided by it
	OpenSessions     *int64          `json:"max_open_sessions"`
}

// Complete adds what a trail does not repeat in each entry: its agent, and the actor's id unless another agent acted for it.
func (e *Event) Complete(organization, agent uuid.UUID) {
	e.Agent = agent
	switch e.Actor.Type {
	case ByTime, ByGateway:
		e.Actor.ID = uuid.Nil
	case BySessionKey:
	case ByKey:
		e.Actor.ID = organization
	default:
		e.Actor = Actor{ByAgent, cmp.Or(e.Actor.ID, agent)}
	}
}
