package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// SessionCharge is a charge to one of many sessions. Its own IdempotencyKey is not used: the batch has one.
type SessionCharge struct {
	SessionID string
	Charge
}

// BatchOptions are settings of ChargeMany. The zero value works.
type BatchOptions struct {
	IdempotencyKey string // of the whole batch; empty: a random one
}

// Result is what became of one charge of a batch. Usage is that of its session when Err is nil. A charge that is
// ErrUnavailable or ErrOutcomeUnknown by itself was not retried: the same batch with the same key of the caller's settles
// it, and gives the others again as they were.
type Result struct {
	Usage Usage
	Err   error
}

// batchItem is a SessionCharge on the wire.
type batchItem struct {
	SessionID string `json:"session_id"`
	chargeBody
}

// batchAnswer is what the service says of one item.
type batchAnswer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

func (c *caller) chargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	items := make([]batchItem, len(charges))
	for i, one := range charges {
		items[i] = batchItem{one.SessionID, one.body()}
	}
	var answers []batchAnswer
	q := c.client.keyed("/v1/actions", options.IdempotencyKey, map[string]any{"actions": items})
	if err := c.do(ctx, q, &answers); err != nil {
		return nil, err
	}
	if len(answers) != len(charges) {
		return nil, fmt.Errorf("remit: %w: %d results for %d charges", ErrOutcomeUnknown, len(answers), len(charges))
	}
	results := make([]Result, len(answers))
	for i, a := range answers {
		results[i] = a.result()
	}
	return results, nil
}

func (a batchAnswer) result() Result {
	if a.Status != http.StatusOK {
		err := problemFrom(a.Status, http.Header{}, a.Body)
		if mayHaveHappened(err) {
			err = &doubt{err}
		}
		return Result{Err: err}
	}
	var r Result
	if err := decode(a.Body, &r.Usage); err != nil {
		r.Err = &doubt{&unreadable{err}}
	}
	return r
}
