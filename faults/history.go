package faults

import (
	"slices"
	"sync"
	"time"

	"remit/money"
)

// Outcome is what a caller knows about its call.
type Outcome string

// The outcomes. An instance that could not be reached, and a 503 unavailable, are Refused: they promise that nothing
// happened, and Check holds them to it.
const (
	OK      Outcome = "ok"      // it has happened
	Refused Outcome = "refused" // it has not happened and will not
	Unknown Outcome = "unknown" // it may have happened: outcome_unknown, an internal error, or no answer
)

// Kind says what a call asks for.
type Kind string

// The kinds. Use is anything at all that must fail once the call's Subject is revoked or ended.
const (
	Charge   Kind = "charge"
	Begin    Kind = "begin"
	Commit   Kind = "commit"
	Rollback Kind = "rollback"
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
	Held    money.MicroUSD // negative when a hold is given back
}

// Call is one request and what came of it.
type Call struct {
	Kind     Kind
	Instance string // base URL of the instance that was asked
	// Subject is what the call is about: a transaction, a refresh token, or what is revoked.
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

// decided says whether the call's answer is the outcome that an idempotency key keeps. An answer to a caller who was not
// let in is none, nor is trouble.
func (c Call) decided() bool {
	return c.Outcome == OK || c.Outcome == Refused && (c.Status == 403 || c.Status == 404 || c.Status == 409)
}

// History is what callers were told, in the order in which they were told it. It is safe for concurrent use.
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

// Calls returns a copy of what was recorded so far.
func (h *History) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// Count returns how many recorded calls the function holds for.
func (h *History) Count(which func(Call) bool) int {
	n := 0
	for _, c := range h.Calls() {
		if which(c) {
			n++
		}
	}
	return n
}
