package server

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore"
	"remit/server/internal/web"
)

// eventAnswer is one event of an agent's audit trail.
type eventAnswer struct {
	ID          string        `json:"id"`
	Type        string        `json:"type"`
	Time        web.Timestamp `json:"occurred_at"`
	Agent       uuid.UUID     `json:"agent_id,omitzero"` // absent for the organization itself
	Actor       eventActor    `json:"actor"`
	Request     string        `json:"request_id,omitzero"`
	Session     uuid.UUID     `json:"session_id,omitzero"`
	Transaction uuid.UUID     `json:"transaction_id,omitzero"`
	Family      uuid.UUID     `json:"family_id,omitzero"`
	Lease       uuid.UUID     `json:"lease_id,omitzero"`
	Asked       uuid.UUID     `json:"session_request_id,omitzero"`
	Child       uuid.UUID     `json:"child_session_id,omitzero"`
	Issuer      uuid.UUID     `json:"trusted_issuer_id,omitzero"`
	Data        eventData     `json:"data,omitzero"`
}

// eventActor is the caller: an organization by its API key, the agent, or the one that acts for it with a delegated token.
type eventActor struct {
	Type string    `json:"type"` // api_key or agent
	ID   uuid.UUID `json:"id"`
}

type eventData struct {
	Limit           string          `json:"limit,omitzero"`
	MaxActions      *int64          `json:"max_actions,omitzero"`
	AddActions      *int64          `json:"add_actions,omitzero"`
	MaxLease        *int64          `json:"max_lease_seconds,omitzero"`
	Actions         *int64          `json:"action_count,omitzero"`
	OverageActions  *int64          `json:"overage_actions,omitzero"`
	MaxValue        *money.MicroUSD `json:"max_value_usd,omitzero"`
	AddValue        *money.MicroUSD `json:"add_value_usd,omitzero"`
	MaxCommitted    *money.MicroUSD `json:"max_committed_usd,omitzero"`
	Held            *money.MicroUSD `json:"value_held_usd,omitzero"`
	Leased          *money.MicroUSD `json:"value_leased_usd,omitzero"`
	Delegated       *money.MicroUSD `json:"value_delegated_usd,omitzero"`
	Released        *money.MicroUSD `json:"value_released_usd,omitzero"`
	Charged         *money.MicroUSD `json:"value_usd,omitzero"`
	Overage         *money.MicroUSD `json:"overage_usd,omitzero"`
	Late            bool            `json:"late,omitzero"`
	Expires         web.Timestamp   `json:"expires_at,omitzero"`
	PreviousExpires web.Timestamp   `json:"previous_expires_at,omitzero"`
	Spent           web.Timestamp   `json:"spent_at,omitzero"`
	Reason          string          `json:"reason,omitzero"`
	Changed         []string        `json:"changed,omitzero"`
	Enforcement     string          `json:"enforcement,omitzero"`
	MaxPerAction    *money.MicroUSD `json:"max_value_usd_per_action,omitzero"`
	Limits          *agentLimits    `json:"limits,omitzero"`
	PreState        jsontext.Value  `json:"pre_state,omitzero"`
	Budget          string          `json:"budget,omitzero"`
	Threshold       int64           `json:"threshold,omitzero"`
	Thresholds      []int           `json:"thresholds,omitzero"`
}

func eventOf(e redisstore.Event, agent, organization uuid.UUID) eventAnswer {
	amount := func(name string) *money.MicroUSD {
		if value, found := e.Amounts[name]; found {
			return &value
		}
		return nil
	}
	var preState jsontext.Value
	if e.PreState != "" {
		preState = jsontext.Value(e.PreState)
	}
	actor := eventActor{"agent", cmp.Or(e.Actor, agent)}
	if e.ByKey {
		actor = eventActor{"api_key", organization}
	}
	return eventAnswer{
		ID: e.ID, Type: e.Type, Time: web.Timestamp(e.Time), Agent: agent, Actor: actor, Request: e.Request,
		Session: e.Session, Transaction: e.Transaction, Family: e.Family, Lease: e.Lease, Asked: e.Asked, Child: e.Child, Issuer: e.Issuer,
		Data: eventData{
			Limit: e.Limit, MaxActions: e.MaxActions, AddActions: e.AddActions, MaxValue: amount("max_value"), AddValue: amount("add_value"),
			Held: amount("held"), Leased: amount("leased"), Delegated: amount("delegated"),
			MaxLease: e.MaxLease, Actions: e.Actions, OverageActions: e.OverageActions,
			MaxCommitted: amount("max_committed"), Late: e.Late, MaxPerAction: amount("max_per_action"),
			Limits:   eventLimits(e.Limits),
			Released: amount("released"), Charged: amount("charged"), Overage: amount("overage"),
			Expires: web.Timestamp(e.Times["expires"]), PreviousExpires: web.Timestamp(e.Times["previous_until"]),
			Spent: web.Timestamp(e.Times["spent"]), Reason: e.Reason, Changed: e.Changed, Enforcement: e.Enforcement,
			PreState: preState, Budget: e.Budget, Threshold: e.Threshold, Thresholds: e.Thresholds,
		},
	}
}
