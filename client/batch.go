package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// SessionCharge is a charge to one of many sessions. Its own IdempotencyKey is ignored: the batch has one.
type SessionCharge struct {
	SessionID string `json:"session_id"`
	Charge
}

// BatchOptions are options of ChargeMany. The zero value works.
type BatchOptions struct {
	IdempotencyKey string // of the whole batch; empty: a random one
}

// Result is the outcome of one charge of a batch. Usage is that of its session when Err is nil. A charge whose own Err is
// ErrUnavailable or ErrOutcomeUnknown was not retried. To resolve it, send the same batch with the same IdempotencyKey: the
// other results are returned unchanged.
type Result struct {
	Usage Usage
	Err   error
}

// batchResult is the result of one item on the wire.
type batchResult struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

func (c *caller) chargeMany(ctx context.Context, charges []SessionCharge, options BatchOptions) ([]Result, error) {
	if slices.ContainsFunc(charges, func(one SessionCharge) bool { return one.OnLimit != "" }) {
		return nil, errors.New("remit: ChargeMany does not ask: charge one by one with OnLimit")
	}
	items := append([]SessionCharge{}, charges...) // null would be refused
	q := c.client.keyed("/v1/actions", options.IdempotencyKey, map[string]any{"actions": items})
	returned, err := decoded[[]batchResult](ctx, c, q)
	if err != nil {
		return nil, err
	}
	if len(returned) != len(charges) {
		return nil, fmt.Errorf("remit: %w: %d results for %d charges", ErrOutcomeUnknown, len(returned), len(charges))
	}
	results := make([]Result, len(returned))
	for i, a := range returned {
		results[i] = a.result()
	}
	return results, nil
}

func (a batchResult) result() Result {
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
