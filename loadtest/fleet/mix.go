package fleet

import "math/rand/v2"

// task is the kind of an action.
type task int

const (
	charges   task = iota // a session is charged for an action
	transacts             // a transaction is begun, and committed or rolled back
	reads                 // a session is read
	verifies              // a proxy verifies an access token
	batches               // sessions of one agent are charged in one request
	refreshes             // an agent refreshes its tokens
	exchanges             // a new process of an agent exchanges the secret for its own tokens
	starts                // the organization creates a session, and its agent charges it
	ends                  // an agent ends the oldest session created by starts, and its totals are checked
	lists                 // an agent reads the first page of its active sessions
	leases                // the lease of a session is charged for an action
	grows                 // a session of a tree gets a child
	raises                // a session of a tree is topped up
	prunes                // a session of a tree is ended, with its descendants
	looks                 // a tree and the budget are read
	suspends              // a session of a tree is suspended with its descendants, and resumed
)

// share is how many percent of the actions are of a task.
type share struct {
	task    task
	percent int
}

// mix is what arrives in the mixed scenario: a fleet behind a proxy that mostly makes single charges.
var mix = [...]share{
	{charges, 50}, {reads, 15}, {verifies, 15}, {transacts, 8}, {batches, 3}, {refreshes, 3}, {exchanges, 1}, {starts, 2}, {ends, 2},
	{lists, 1},
}

// treeMix is what arrives in the tree scenario.
var treeMix = [...]share{{charges, 42}, {transacts, 15}, {grows, 20}, {raises, 10}, {prunes, 6}, {looks, 4}, {suspends, 3}}

const (
	minBatch, maxBatch = 2, 20 // charges

	// maxStarted bounds the sessions created during a run. Beyond it, starts read a session instead.
	maxStarted = 50_000
)

// drawTask draws the task of an action.
func drawTask(r *rand.Rand, cfg config) task {
	n := r.IntN(100)
	if cfg.scenario == leased {
		return leases
	}
	if cfg.scenario == trees {
		return drawFrom(treeMix[:], n)
	}
	if cfg.scenario != mixed {
		if n < cfg.transactions {
			return transacts
		}
		return charges
	}
	return drawFrom(mix[:], n)
}

// drawFrom returns the task of the nth percent.
func drawFrom(mix []share, n int) task {
	for _, part := range mix {
		if n < part.percent {
			return part.task
		}
		n -= part.percent
	}
	return charges
}
