package fleet

import (
	"context"
	"sync"
	"sync/atomic"

	"remit/client"
	"remit/money"
)

// session is one session of an agent, with the client's ledger of it.
type session struct {
	sdk    *client.Session
	agent  *agent
	limits limits        // of one in a tree: the most that top-ups may have made
	lease  *client.Lease // only in the leased scenario
	ledger ledger        // without what was charged to children
	*node                // its place in a tree; nil outside the tree scenario
}

// sent is what is known when a request about a session is sent.
type sent struct {
	requested   effect
	before      effect       // what was acknowledged
	suspensions []suspension // of the session and of those above
}

// send adds a request to the ledger before it is sent, with the most that it may do.
func (s *session) send(requested effect) sent {
	known := sent{requested: requested, before: s.ledger.send(requested)}
	if s.node != nil {
		known.suspensions = s.suspensionsAbove()
	}
	return known
}

// finish adds the reply to the ledger, with what the request did if it was acknowledged, and returns all that is known then.
func (s *session) finish(known sent, did effect, r reply) fact {
	s.ledger.finish(known.requested, did, r)
	return s.judge(known, r)
}

// judge returns what is known of a request when its reply has arrived.
func (s *session) judge(known sent, r reply) fact {
	f := fact{session: s.sdk.ID(), requested: known.requested, reply: r, window: window{before: known.before}}
	if s.node != nil {
		return s.judgeInTree(f, known)
	}
	f.limits, f.possible = s.limits, s.ledger.possible()
	return f
}

// does returns the SDK call for an action on the session.
func (s *session) does(a action) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.sdk.Charge(ctx, client.Charge{ActionType: a.kind, Value: a.requested.value, Count: a.requested.count})
		return err
	}
}

// get reads the session.
func (s *session) get(ctx context.Context) error {
	_, err := s.sdk.Get(ctx)
	return err
}

// startedLimits are the limits of a session created during a run, which is charged once.
var startedLimits = limits{actions: 100, value: 1000 * money.USD}

// startedSessions are the sessions created during a run.
type startedSessions struct {
	made atomic.Int64
	open chan *session // oldest first; room for maxStarted

	mu    sync.Mutex
	ended int     // how many have ended
	sums  entries // their ledgers
}

// enter adds the ledger of a session that has ended.
func (s *startedSessions) enter(sums entries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	s.sums = s.sums.plus(sums)
}
