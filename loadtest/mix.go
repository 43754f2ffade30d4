package main

import "math/rand/v2"

// task is what is due at an arrival.
type task int

const (
	charges   task = iota // a session is charged for an action
	transacts             // a transaction, begun and settled
	reads                 // a session is read
	verifies              // a gateway asks whose an access token is
	batches               // sessions of one agent are charged in one request
	refreshes             // an agent refreshes its tokens
	exchanges             // a process of an agent starts: it exchanges the secret for tokens of its own
	starts                // the organization makes a session, which its agent charges
	ends                  // an agent ends the oldest session that was made so, and its books are checked
	lists                 // an agent reads the first page of its active sessions
)

// mix is what arrives in the mixed scenario: a fleet behind a gateway, most of whose calls are single charges.
var mix = [...]struct {
	task    task
	percent int
}{
	{charges, 50}, {reads, 15}, {verifies, 15}, {transacts, 8}, {batches, 3}, {refreshes, 3}, {exchanges, 1}, {starts, 2}, {ends, 2},
	{lists, 1},
}

const (
	minBatch, maxBatch = 2, 20 // charges

	// maxStarted bounds the sessions that are made during a run; what would make more reads a session instead.
	maxStarted = 50_000
)

// drawTask draws what an action is.
func drawTask(r *rand.Rand, cfg config) task {
	n := r.IntN(100)
	if cfg.scenario != mixed {
		if n < cfg.transactions {
			return transacts
		}
		return charges
	}
	for _, part := range mix {
		if n < part.percent {
			return part.task
		}
		n -= part.percent
	}
	return charges
}
