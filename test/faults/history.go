package faults

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"remit/money"
)

// Outcome is what a caller knows about its call.
type Outcome string

// The outcomes. A failed connection and a 503 unavailable are Refused, because they promise that nothing happened. Check
// verifies that promise.
const (
	OK      Outcome = "ok"      // it has happened
	Refused Outcome = "refused" // it has not happened and will not
	Unknown Outcome = "unknown" // it may have happened: outcome_unknown, an internal error, or no answer
)

// Kind says what a call asks for.
type Kind string

// The kinds. Use is any call that must fail after its Subject was revoked or ended.
const (
	Charge   Kind = "charge"
	Begin    Kind = "begin"
	Commit   Kind = "commit"
	Rollback Kind = "rollback"
	Grant    Kind = "grant"  // of a lease
	Settle   Kind = "settle" // a lease
	Exchange Kind = "exchange"
	Refresh  Kind = "refresh"
	Revoke   Kind = "revoke"
	End      Kind = "end"
	Use      Kind = "use"
	Create   Kind = "create"
	Read     Kind = "read"
)

// Effect is what a call does to its session, if it happens.
type Effect struct {
	Actions int64
	Used    money.MicroUSD
	Held    money.MicroUSD // negative when a hold is released
}

// Call is one request and its outcome.
type Call struct {
	Kind     Kind
	Instance string // base URL
	// Subject is the transaction, lease, refresh token or revoked thing that the call is about.
	Subject string
	Session string // that the Effect is on; empty for none
	Key     string // idempotency key; empty for none
	Effect  Effect

	Began, Ended time.Duration // since the history began
	Outcome      Outcome
	Status       int    // 0 without an answer
	Code         string // of a problem; "unreachable" when no connection was made
	Answer       string // the body; of a refresh the successor alone
	Err          string // why there is no answer
	Replayed     bool   // the answer is that to an earlier call with the same key
}

// decided says whether the answer is the outcome stored for an idempotency key. Authentication failures and server errors
// are not stored.
func (c Call) decided() bool {
	return c.Outcome == OK || c.Outcome == Refused && (c.Status == 403 || c.Status == 404 || c.Status == 409)
}

// History holds calls in the order in which they ended. It is safe for concurrent use.
type History struct {
	begin time.Time

	mu    sync.Mutex
	calls []Call
}

// NewHistory returns an empty history that begins now.
func NewHistory() *History { return &History{begin: time.Now()} }

// Now is the time since the history began.
func (h *History) Now() time.Duration { return time.Since(h.begin) }

// Add records a call that has ended.
func (h *History) Add(c Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// Calls returns a copy of the calls recorded so far.
func (h *History) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Count returns how many recorded calls the function holds for.
func (h *History) Count(which func(Call) bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, c := range h.calls {
		if which(c) {
			n++
		}
	}
	return n
}

// Summary returns one line: how many calls had each outcome, and the codes of those that were not acknowledged.
func Summary(calls []Call) string {
	outcomes, codes := map[Outcome]int{}, map[string]int{}
	for _, c := range calls {
		outcomes[c.Outcome]++
		switch {
		case c.Outcome == OK:
		case c.Code != "":
			codes[c.Code]++
		case c.Status != 0:
			codes[fmt.Sprint(c.Status)]++
		default:
			codes["no answer"]++
		}
	}
	return fmt.Sprintf("%d calls: %d ok, %d refused, %d unknown (%v)", len(calls), outcomes[OK], outcomes[Refused], outcomes[Unknown], codes)
}
