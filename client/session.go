package client

import (
	"context"
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
	ActionType string         // such as llm.call or payment
	Value      money.MicroUSD // of all Count actions together
	Count      int64          // 1 to 1000; 0: 1
	Scope      string         // which the token and the session must have; empty: none

	// With Ask, a charge beyond the session's limit asks for what is missing and waits for the decision. If it is denied, or the
	// ctx ends first, the error is *RequestNotApproved. ChargeMany does not ask.
	OnLimit OnLimit
	Reason  string // for who decides; Ask requires it

	IdempotencyKey string // empty: a random one
}

// chargeBody is a Charge on the wire.
type chargeBody struct {
	ActionType string         `json:"action_type,omitzero"`
	Value      money.MicroUSD `json:"value_usd,omitzero"`
	Count      int64          `json:"count,omitzero"`
	Scope      string         `json:"scope,omitzero"`
}

func (c Charge) body() chargeBody { return chargeBody{c.ActionType, c.Value, c.Count, c.Scope} }

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
	var u Usage
	err := s.caller.do(ctx, s.caller.client.keyed(sessionPath(s.id)+"/actions", key, c.body()), &u)
	return u, err
}

func (c Charge) asking(s *Session, again func(key string) error) *asking {
	return &asking{s, amount{max(c.Count, 1), c.Value}, c.Reason, c.IdempotencyKey, again}
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
func (s *Session) Get(ctx context.Context) (SessionInfo, error) { return s.caller.session(ctx, s.id) }

// End ends the session and rolls back its pending transactions. Ending it again has no effect. It returns *SessionNotActive
// for a session that has expired or was revoked.
func (s *Session) End(ctx context.Context) error { return s.caller.endSession(ctx, s.id) }
