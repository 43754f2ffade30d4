package client

import (
	"net/http"
	"net/url"
	"time"

	"remit/money"
)

// operation is a call that grants a lease, settles one, or does both. It stays the same however often it is sent.
type operation struct {
	call    call
	settles *grant        // nil: none
	asks    amount        // nothing: no lease
	begun   time.Duration // before it was first sent
	doubt   bool          // whether it may have taken effect
}

// grantBody asks for a lease, on the wire.
type grantBody struct {
	MaxActions int64          `json:"max_actions,omitzero"`
	MaxValue   money.MicroUSD `json:"max_value_usd,omitzero"`
	ExpiresIn  int64          `json:"expires_in_seconds"`
	Partial    bool           `json:"partial"`
}

// typeUsage is what was charged under one action type, on the wire.
type typeUsage struct {
	ActionCount int64          `json:"action_count"`
	Value       money.MicroUSD `json:"value_usd"`
}

// settleBody settles a lease, on the wire.
type settleBody struct {
	ActionCount  int64                `json:"action_count"`
	ValueUsed    money.MicroUSD       `json:"value_used_usd"`
	ByActionType map[string]typeUsage `json:"by_action_type,omitzero"`
	Renew        *grantBody           `json:"renew,omitzero"`
}

// leaseAnswer is a lease as the service returns it.
type leaseAnswer struct {
	ID         string         `json:"id"`
	MaxActions int64          `json:"max_actions"`
	MaxValue   money.MicroUSD `json:"max_value_usd"`
	CreatedAt  time.Time      `json:"created_at"`
	ExpiresAt  time.Time      `json:"expires_at"`
}

// operationAnswer is the response to a grant and to a settlement.
type operationAnswer struct {
	leaseAnswer              // of a grant
	Renewed     *leaseAnswer `json:"renewed"` // of a settlement
}

func (l *Lease) grantBody(ask amount) *grantBody {
	return &grantBody{ask.actions, ask.value, l.seconds, true}
}

// grant returns the operation that asks for a lease of the size ask. It has a key in any case, so that a lost response loses no
// budget.
func (l *Lease) grant(ask amount) *operation {
	path := sessionPath(l.session.id) + "/leases"
	q := call{method: http.MethodPost, path: path, body: l.grantBody(ask), semantics: idempotent, key: randomKey()}
	return &operation{call: q, asks: ask, begun: l.now()}
}

// settlement returns the operation that settles g and asks for a lease of the size ask. It needs no key: the service answers the
// same numbers for the same lease as it did the first time, with the same renewal, for an hour.
func (l *Lease) settlement(g *grant, ask amount) *operation {
	u := g.usage()
	body := settleBody{u.all.actions, u.all.value, l.byActionType(u), nil}
	if !ask.isZero() {
		body.Renew = l.grantBody(ask)
	}
	path := "/v1/leases/" + url.PathEscape(g.id) + "/settle"
	q := call{method: http.MethodPost, path: path, body: body, semantics: idempotent}
	return &operation{call: q, settles: g, asks: ask, begun: l.now()}
}

// byActionType leaves out the types without charges. It is nil when no charge had a type.
func (l *Lease) byActionType(u usage) map[string]typeUsage {
	types := map[string]typeUsage{}
	for name, slot := range *l.slots.Load() {
		if name != "" && u.bySlot[slot].actions > 0 {
			types[name] = typeUsage{u.bySlot[slot].actions, u.bySlot[slot].value}
		}
	}
	if len(types) == 0 {
		return nil
	}
	return types
}

// newGrant is a lease as this process spends it. Its time counts from before the request, so that it ends here first.
func (l *Lease) newGrant(a *leaseAnswer, op *operation) *grant {
	granted := amount{max(a.MaxActions, 0), max(a.MaxValue, 0)}.least(op.asks)
	lasts := min(a.ExpiresAt.Sub(a.CreatedAt), time.Duration(l.seconds)*time.Second)
	g := &grant{id: a.ID, granted: granted, low: amount{granted.actions / 2, granted.value / 2}, begun: op.begun}
	g.until = op.begun + lasts - lasts/margin
	g.rest.Store(uint64(pack(granted)))
	return g
}
