package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	"remit/money"
)

// Session is a budget for the actions of an agent. Agent.Session returns one.
type Session struct {
	id     string
	agent  string
	caller *caller
}

// Charge is one use of a session. The zero value charges one action and no value.
type Charge struct {
	ActionType string         `json:"action_type,omitzero"` // such as llm.call or payment
	Value      money.MicroUSD `json:"value_usd,omitzero"`   // of all Count actions together
	Count      int64          `json:"count,omitzero"`       // 1 to 1000; 0: 1
	Scope      string         `json:"scope,omitzero"`       // which the token and the session must have; empty: none

	// With Ask, a charge beyond the session's limit asks for what is missing and waits for the decision. If it is denied, or the
	// ctx ends first, the error is *RequestNotApproved. ChargeMany does not ask.
	OnLimit OnLimit `json:"-"`
	Reason  string  `json:"-"` // for who decides; Ask requires it

	IdempotencyKey string `json:"-"` // empty: a random one
}

// Usage is what is used of a session and what remains. ValueHeld is held by pending transactions and does not remain.
type Usage struct {
	ActionCount      int64          `json:"action_count"`
	MaxActions       int64          `json:"max_actions"`
	RemainingActions int64          `json:"remaining_actions"`
	ValueUsed        money.MicroUSD `json:"value_used_usd"`
	MaxValue         money.MicroUSD `json:"max_value_usd"`
	ValueHeld        money.MicroUSD `json:"value_held_usd"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
	ExpiresAt        time.Time      `json:"expires_at"`

	// WouldRefuse is the limit that would have refused a charge to a session that only observes its limits; empty: none.
	WouldRefuse string `json:"would_refuse,omitzero"`
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Charge charges an action to the session and returns the usage after it. Call it before the action. It is all or nothing:
// *LimitReached, *SessionNotActive and *InsufficientScope charge nothing.
func (s *Session) Charge(ctx context.Context, c Charge) (Usage, error) {
	u, err := s.charge(ctx, c, c.IdempotencyKey)
	if c.OnLimit == Ask {
		a := c.asking(s, func(key string) error {
			u, err = s.charge(ctx, c, key)
			return err
		})
		err = a.resolve(ctx, err)
	}
	return u, err
}

func (s *Session) charge(ctx context.Context, c Charge, key string) (Usage, error) {
	return decoded[Usage](ctx, s.caller, s.caller.client.keyed(sessionPath(s.id)+"/actions", key, c))
}

func (c Charge) asking(s *Session, again func(key string) error) *asking {
	return &asking{s, amount{max(c.Count, 1), c.Value}, c.Reason, c.IdempotencyKey, again}
}

// DryRunCharge reports what Charge would return now, the usage after it included, and charges nothing. It ignores OnLimit and
// IdempotencyKey.
func (s *Session) DryRunCharge(ctx context.Context, c Charge) (Usage, error) {
	body := struct {
		Charge
		DryRun bool `json:"dry_run"`
	}{c, true}
	return decoded[Usage](ctx, s.caller, call{method: http.MethodPost, path: sessionPath(s.id) + "/actions", body: body})
}

// ChargeMany makes up to 500 charges to this session in one request; see Agent.ChargeMany.
func (s *Session) ChargeMany(ctx context.Context, charges []Charge, options BatchOptions) ([]Result, error) {
	own := make([]SessionCharge, len(charges))
	for i, c := range charges {
		own[i] = SessionCharge{s.id, c}
	}
	return s.caller.chargeMany(ctx, own, options)
}

// Begin begins a transaction: it charges one action and holds the value until the transaction is committed, rolled back or
// expires. Errors are those of Charge. After ErrOutcomeUnknown there is no Transaction to settle: its hold, if any, is
// released when it expires.
func (s *Session) Begin(ctx context.Context, p TransactionParams) (*Transaction, error) {
	t, err := s.caller.begin(ctx, p.body(s.id), p.IdempotencyKey)
	if p.OnLimit == Ask {
		a := &asking{s, amount{1, p.Value}, p.Reason, p.IdempotencyKey, func(key string) error {
			t, err = s.caller.begin(ctx, p.body(s.id), key)
			return err
		}}
		err = a.resolve(ctx, err)
	}
	return t, err
}

// Get reads the session.
func (s *Session) Get(ctx context.Context) (SessionInfo, error) {
	return decoded[SessionInfo](ctx, s.caller, call{method: http.MethodGet, path: sessionPath(s.id)})
}

// End ends the session and rolls back its pending transactions. Ending it again has no effect. It returns *SessionNotActive
// for a session that has expired or was revoked.
func (s *Session) End(ctx context.Context) error {
	var ended struct{}
	return s.caller.do(ctx, call{method: http.MethodPost, path: sessionPath(s.id) + "/end", semantics: idempotent}, &ended)
}

// SessionParams describe a new session. An omitted limit gets the service's default, which the response shows.
type SessionParams struct {
	AgentID    string          `json:"agent_id"`
	MaxActions int64           `json:"max_actions,omitzero"`   // 1 to 1,000,000,000
	MaxValue   *money.MicroUSD `json:"max_value_usd,omitzero"` // nil: omitted; 0 is a limit
	ExpiresIn  time.Duration   `json:"-"`                      // to the second, up to 30 days
	Scopes     []string        `json:"scopes,omitzero"`        // of the agent's; nil: all of them
	Metadata   any             `json:"metadata,omitzero"`      // a JSON object of at most 16 KiB

	// MaxCommitted limits SessionInfo.ValueCommitted, which rollbacks do not lower; nil: no such limit.
	MaxCommitted *money.MicroUSD `json:"max_committed_usd,omitzero"`

	// MaxLease is the longest time of a lease, to the second, up to an hour; 0: the agent may not lease (Session.Lease).
	MaxLease time.Duration `json:"-"`

	MaxValuePerAction *money.MicroUSD `json:"max_value_usd_per_action,omitzero"` // limit of one charge or hold; nil: none
	Enforcement       string          `json:"enforcement,omitzero"`              // enforce or observe: do and count what limits would refuse; empty: enforce
	Thresholds        []int           `json:"thresholds,omitzero"`               // percents, 1 to 100, at which budget.threshold is sent; nil: 80 and 100; empty: none
	ParentSessionID   string          `json:"parent_session_id,omitzero"`        // the session of which this one is a part; empty: none. Session.CreateChild sets it

	IdempotencyKey string `json:"-"` // empty: a random one
}

// SessionLimits are new limits of a session. Omitted ones stay.
type SessionLimits struct {
	MaxActions int64           `json:"max_actions,omitzero"`
	MaxValue   *money.MicroUSD `json:"max_value_usd,omitzero"` // nil: omitted; 0 is a limit
	ExpiresIn  time.Duration   `json:"-"`                      // from now, to the second

	// AddActions and AddValue raise a limit by an amount, so that concurrent top-ups add up. The service refuses them together
	// with MaxActions or MaxValue.
	AddActions int64          `json:"add_actions,omitzero"`
	AddValue   money.MicroUSD `json:"add_value_usd,omitzero"`

	MaxLease *time.Duration `json:"-"` // of a lease, as in SessionParams; nil: omitted; 0: no further leases

	MaxValuePerAction *money.MicroUSD `json:"-"`                    // as in SessionParams; nil: omitted; NoLimit: removed
	Enforcement       string          `json:"enforcement,omitzero"` // enforce or observe; empty: omitted
	Thresholds        []int           `json:"thresholds,omitzero"`  // as in SessionParams; nil: omitted

	IdempotencyKey string `json:"-"` // for AddActions and AddValue; empty: a random one
}

// SessionInfo is a session as the service returns it.
type SessionInfo struct {
	ID           string         `json:"id"`
	AgentID      string         `json:"agent_id"`
	Status       string         `json:"status"` // active, completed, expired or revoked
	MaxActions   int64          `json:"max_actions"`
	ActionCount  int64          `json:"action_count"`
	MaxValue     money.MicroUSD `json:"max_value_usd"`
	ValueUsed    money.MicroUSD `json:"value_used_usd"`
	ValueHeld    money.MicroUSD `json:"value_held_usd"`             // by pending transactions
	ValueOverage money.MicroUSD `json:"value_overage_usd,omitzero"` // spent beyond limits, by transactions and leases

	ValueCommitted money.MicroUSD  `json:"value_committed_usd"`        // total charged or committed; rollbacks do not lower it
	MaxCommitted   *money.MicroUSD `json:"max_committed_usd,omitzero"` // its limit; nil: none

	MaxLeaseSeconds int64 `json:"max_lease_seconds"` // the longest time of a lease; 0: the session has no leases

	Scopes    []string        `json:"scopes"`
	Metadata  json.RawMessage `json:"metadata"`
	ExpiresAt time.Time       `json:"expires_at"`
	CreatedAt time.Time       `json:"created_at"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`

	SuspendedAt      time.Time `json:"suspended_at,omitzero"` // zero: the session is not suspended
	SuspensionReason string    `json:"suspension_reason,omitzero"`

	MaxValuePerAction *money.MicroUSD `json:"max_value_usd_per_action,omitzero"` // nil: none
	Enforcement       string          `json:"enforcement,omitzero"`              // enforce or observe
	ObservedRefusals  int64           `json:"observed_refusals,omitzero"`        // what limits would have refused

	// Thresholds are the percents of its limits at which budget.threshold is sent; nil: 80 and 100.
	Thresholds []int `json:"thresholds,omitzero"`

	// What the session's open children hold of it. ActionCount, ValueUsed and ValueHeld do not contain it.
	ActionsDelegated int64          `json:"actions_delegated,omitzero"`
	ValueDelegated   money.MicroUSD `json:"value_delegated_usd,omitzero"`
	ParentSessionID  string         `json:"parent_session_id,omitzero"` // empty: none
}

// SessionSummary is a session as lists show it.
type SessionSummary struct {
	ID          string         `json:"id"`
	AgentID     string         `json:"agent_id"`
	Status      string         `json:"status"`
	ActionCount int64          `json:"action_count"`
	MaxActions  int64          `json:"max_actions"`
	ValueUsed   money.MicroUSD `json:"value_used_usd"`
	MaxValue    money.MicroUSD `json:"max_value_usd"`
	ExpiresAt   time.Time      `json:"expires_at"`
}

// SessionFilter narrows a list of sessions. The zero value selects all.
type SessionFilter struct {
	Status  string // active, completed, expired or revoked
	AgentID string
}

// CreateSession creates a session for an agent.
func (o *Organization) CreateSession(ctx context.Context, p SessionParams) (SessionInfo, error) {
	return o.caller.createSession(ctx, p)
}

func (c *caller) createSession(ctx context.Context, p SessionParams) (SessionInfo, error) {
	p.Metadata = asGiven(p.Metadata)
	body := struct {
		SessionParams
		ExpiresIn int64 `json:"expires_in_seconds,omitzero"`
		MaxLease  int64 `json:"max_lease_seconds,omitzero"`
	}{p, seconds(p.ExpiresIn), seconds(p.MaxLease)}
	return decoded[SessionInfo](ctx, c, c.client.keyed("/v1/sessions", p.IdempotencyKey, body))
}

// UpdateSession raises or lowers the limits of an active session. A limit below what is used and held is a *LimitBelowUsage.
func (o *Organization) UpdateSession(ctx context.Context, id string, l SessionLimits) (SessionInfo, error) {
	body := struct {
		SessionLimits
		ExpiresIn         int64  `json:"expires_in_seconds,omitzero"`
		MaxLease          *int64 `json:"max_lease_seconds,omitzero"`
		MaxValuePerAction any    `json:"max_value_usd_per_action,omitzero"`
	}{l, seconds(l.ExpiresIn), secondsOrNil(l.MaxLease), limitOrNull(l.MaxValuePerAction)}
	q := call{method: http.MethodPatch, path: sessionPath(id), body: body, semantics: idempotent, key: l.IdempotencyKey}
	if l.AddActions != 0 || l.AddValue != 0 { // repeated without a key, they would count twice
		q = o.caller.client.withKey(q, l.IdempotencyKey)
	}
	return decoded[SessionInfo](ctx, o.caller, q)
}

// GetSession reads a session.
func (o *Organization) GetSession(ctx context.Context, id string) (SessionInfo, error) {
	return o.session(id).Get(ctx)
}

// session returns a session of the organization, for what an agent may do with it too.
func (o *Organization) session(id string) *Session { return &Session{id: id, caller: o.caller} }

// Sessions yields the organization's sessions, newest first.
func (o *Organization) Sessions(ctx context.Context, f SessionFilter) iter.Seq2[SessionSummary, error] {
	return o.caller.sessions(ctx, f)
}

// EndSession ends a session, as Session.End does.
func (o *Organization) EndSession(ctx context.Context, id string) error {
	return o.session(id).End(ctx)
}

func (c *caller) sessions(ctx context.Context, f SessionFilter) iter.Seq2[SessionSummary, error] {
	return list[SessionSummary](ctx, c, "/v1/sessions", perPage, "status", f.Status, "agent_id", f.AgentID)
}
