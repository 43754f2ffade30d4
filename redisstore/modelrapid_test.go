package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/test/redistest"
	"remit/test/suite"
)

// modelSteps is the minimum number of steps in which the test compares store and model. make test plays a tenth. The race
// detector makes each step five times slower and needs only a few, so with it the test plays a tenth too.
const modelSteps = 200_000

const playsATenth = suite.RaceDetector || !suite.Long

// Random sequences of all operations have the same outcomes in the store as in the model, and leave the same state.
func TestStoreMatchesModel(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	s := openLeastPrivileged(t, Config{}, realRedis)
	counts := &tally{outcomes: map[string]int{}}
	wanted, rounds := modelSteps, 9
	if playsATenth {
		wanted, rounds = modelSteps/10, 1
	}
	play := func(t *testing.T) {
		for i := range 8 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				// 100 checks of 9 times 30 steps on average: about 27,000.
				playSequences(t, s, rounds, counts)
			})
		}
	}
	t.Run("sequences", play)
	// Some outcomes are rare: too rare for a tenth of the steps, and chance may leave one out of all of them.
	for round := 0; round < 2 && !playsATenth && !t.Failed() && len(counts.missing()) > 0; round++ {
		t.Run("more sequences", play)
	}
	if t.Failed() {
		return
	}
	t.Logf("%d steps: %v", counts.steps, counts.outcomes)
	if counts.steps < wanted {
		t.Errorf("%d steps, want %d: -rapid.checks and -rapid.steps must have their defaults", counts.steps, wanted)
	}
	if missing := counts.missing(); !playsATenth && len(missing) > 0 {
		t.Errorf("%q never occurred, so they were not tested", missing)
	}
}

func TestStoreMatchesModelOnEachRedis(t *testing.T) {
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		playSequences(t, s, 1, &tally{outcomes: map[string]int{}})
	})
}

// playSequences compares store and model in 100 fixtures, in that many rounds of 30 steps on average in each.
func playSequences(t *testing.T, s *Store, rounds int, counts *tally) {
	t.Helper()
	unrestricted := peek(t, s)
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer(t, s, unrestricted, counts)
		for range rounds { // several short rounds, because rapid shrinks a failing sequence by removing steps
			t.Repeat(map[string]func(*rapid.T){"": p.check, "step": p.step})
		}
		p.w.wantStored(t, p.m)
		p.w.wantNotedOnce(t, p.m)
	})
}

// everyOutcome lists the outcomes that must occur, because the test proves nothing about others.
var everyOutcome = []string{
	"NewSession", "NewSession again", "NewSession: the scope admin is not held",
	"readSessionStep", "readSessionStep: no such session",
	"Charge", "Charge again", "Charge: no such session", "Charge: the session is completed", "Charge: the session is expired",
	"Charge: the scope admin is not held", "Charge: the session's max_actions is reached",
	"Charge: the session's max_value_usd is reached", "Charge: the session's max_committed_usd is reached",
	"Charge again: the session's max_value_usd is reached",
	"Charge: the idempotency key was used for another request",
	"[]BatchCharge", "[]BatchCharge again", "[]BatchCharge: the idempotency key was used for another request",
	"NewLimits", "NewLimits: max_actions must not be below what is used and held", "NewLimits: the session is expired",
	"NewLimits: max_value_usd must not be below what is used and held", "NewLimits again",
	"NewLimits: max_actions would become more than it may", "NewLimits: max_value_usd would become more than it may",
	"endStep", "endStep: the session is expired",
	"suspendStep", "suspendStep: the session is expired", "resumeStep", "resumeStep: the session is expired",
	"suspendStep: no such session", "Charge: the session is suspended", "NewTransaction: the session is suspended",
	"NewHold: the session is suspended", "NewLease: the session is suspended", "NewSettlement refused: session_suspended",
	"NewTransaction", "NewTransaction again", "NewTransaction: no such session",
	"NewTransaction: the session is completed", "NewTransaction: the session is expired",
	"NewTransaction: the session's max_actions is reached", "NewTransaction: the session's max_value_usd is reached",
	"NewTransaction again: the session's max_value_usd is reached", "NewTransaction: the session's max_committed_usd is reached",
	"NewHold", "NewHold again", "NewHold: no such transaction", "NewHold: the session is expired",
	"NewHold: the session's max_value_usd is reached", "NewHold: the session's max_committed_usd is reached",
	"NewHold: the transaction is committed", "NewHold: the transaction is rolled_back", "NewHold: the transaction is expired",
	"NewTransaction: the idempotency key was used for another request",
	"Commit", "Commit again", "Commit with overage", "Commit in an expired session",
	"Commit with overage in an expired session", "Commit: no such transaction",
	"Commit: the transaction is committed", "Commit: the transaction is rolled_back", "Commit late", "Commit again late",
	"Commit with overage late", "Commit in an expired session late", "Commit in a completed session late",
	"Commit with overage in an expired session late", "Commit with overage in a completed session late",
	"Commit again: the transaction is committed", "Commit: the idempotency key was used for another request",
	"Rollback", "Rollback again", "Rollback with overage", "Rollback in an expired session",
	"Rollback: " + ErrTokenLacksScope.Error(), "Rollback: the scope write is not held",
	"Rollback: the transaction is rolled_back", "Rollback: the transaction is expired", "Rollback: " + ErrNotReversible.Error(),
	"Rollback: the idempotency key was used for another request",
	"Commit by the gateway", "Commit by the gateway as before", "Commit by the gateway late", "Commit by the gateway with overage",
	"Commit by the gateway: no such transaction", "Commit: " + ErrHeldByGateway.Error(), "Commit again: " + ErrHeldByGateway.Error(),
	"Rollback by the gateway", "Rollback by the gateway as before", "Rollback: " + ErrHeldByGateway.Error(),
	"NewHold by the gateway", "NewHold by the gateway: the transaction is committed", "NewHold: " + ErrHeldByGateway.Error(),
	"NewLease", "NewLease again", "NewLease: no such session", "NewLease: the session is expired", "NewLease: the session is completed",
	"NewLease: the session's max_actions is reached", "NewLease: the session's max_value_usd is reached",
	"NewLease: the session's max_committed_usd is reached", "NewLease: the session's max_lease_seconds is reached",
	"NewLease: the session's expires_at is reached", "NewLease: the idempotency key was used for another request",
	"NewSettlement", "NewSettlement again", "NewSettlement late", "NewSettlement with overage", "NewSettlement renewed",
	"NewSettlement refused: session_not_active", "NewSettlement refused: session_limit_reached", "NewSettlement: no such lease",
	"NewSettlement: the lease is settled with other numbers", "NewSettlement: the idempotency key was used for another request",
	"readLeaseStep", "readLeaseStep: no such lease",
	"readTransactionStep", "readTransactionStep: no such transaction", "Query", "Query: no such session", "Duration",
}

type tally struct {
	lock     sync.Mutex
	steps    int
	outcomes map[string]int
}

func (b *tally) missing() []string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return slices.DeleteFunc(slices.Clone(everyOutcome), func(what string) bool { return b.outcomes[what] > 0 })
}

// stepPackage is the package in the name of a step's type.
var stepPackage = regexp.MustCompile(`\b\w+\.`)

func (b *tally) count(m *model, st step, o outcome) {
	what := stepPackage.ReplaceAllString(fmt.Sprintf("%T", st.op), "")
	if o.replayed {
		what += " again"
	}
	what += given(" by the gateway", st.gateway) + settled(st, o)
	t, ok := o.value.(Transaction)
	what += given(" as before", t.Repeated)
	if ok && t.Overage > 0 {
		what += " with overage"
	}
	if s := m.session(t.Session); ok && s != nil && s.Status == Expired {
		what += " in an expired session"
	} else if ok && s != nil && s.Status == Completed {
		what += " in a completed session"
	}
	if _, commits := st.op.(Commit); commits && t.Late {
		what += " late"
	}
	if o.err != nil {
		what += ": " + o.err.Error()
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	b.steps++
	b.outcomes[what]++
}

// settled says what became of a settlement, "" of another step.
func settled(st step, o outcome) string {
	l, ok := o.value.(Lease)
	if _, settles := st.op.(NewSettlement); !ok || !settles {
		return ""
	}
	switch s := l.Settlement; {
	case s.Refusal != "":
		return " refused: " + s.Refusal
	case s.Renewed != nil:
		return " renewed"
	case s.Overage > 0:
		return " with overage"
	case s.Late:
		return " late"
	}
	return ""
}

// player executes random steps in a fixture and its model.
type player struct {
	w      *fixture
	m      *model
	counts *tally
	unit   money.MicroUSD // amounts are small multiples of it, so that limits are met often
	keyed  []step         // steps with an idempotency key, to repeat

	requests int // with an idempotency key
}

func newPlayer(t *rapid.T, s *Store, unrestricted redis.UniversalClient, counts *tally) *player {
	p := &player{counts: counts}
	p.w, p.m = newFixture(t, s, unrestricted)
	// The large unit makes amounts that a script could write as 1e+14 by mistake.
	p.unit = rapid.SampledFrom([]money.MicroUSD{1, 1_000_000_000_007}).Draw(t, "unit")
	first := p.newSession(t)
	first.Scopes = nil // so that the store cannot refuse it
	p.follow(t, step{op: first, byAPIKey: true})
	return p
}

// step executes one random step in both, and fails the test if their outcomes differ.
func (p *player) step(t *rapid.T) {
	p.follow(t, draws[rapid.SampledFrom(stepKinds).Draw(t, "kind")](p, t))
}

func (p *player) follow(t *rapid.T, st step) {
	answer := p.w.do(context.Background(), p.w.store, st)
	want, got := p.m.follow(st, answer)
	p.counts.count(p.m, st, want)
	if !got.is(want) {
		t.Fatalf("%v:\n%v, want\n%v", st, got, want)
	}
	if charges, batch := want.value.([]ChargeOutcome); batch && slices.ContainsFunc(charges, func(c ChargeOutcome) bool { return kernel.IsSuspended(c.Err) }) {
		// The part of a suspended session has no outcome: a repetition charges it once the session is resumed.
		p.keyed = slices.DeleteFunc(p.keyed, func(k step) bool { return k.key == st.key && k.byAPIKey == st.byAPIKey })
	}
}

// check verifies the invariants of the model, and sometimes compares the store with the model.
func (p *player) check(t *rapid.T) {
	if fault := p.m.fault(); fault != "" {
		t.Fatal(fault)
	}
	if rapid.IntRange(0, 31).Draw(t, "compare") == 20 {
		p.w.wantStored(t, p.m)
	}
}

// fault returns the invariant that the model violates, or "".
func (m *model) fault() string {
	for _, s := range m.sessions {
		var used, undone money.MicroUSD
		held, overage := m.leased(s.ID)
		leased := held
		sequence := int64(0)
		for _, t := range m.transactions {
			if t.Session != s.ID {
				continue
			}
			if sequence++; t.Sequence != sequence {
				return fmt.Sprintf("transaction %d of a session has the sequence number %d", sequence, t.Sequence)
			}
			if !t.SpentOnExpiry {
				held += t.Held
			}
			if t.Status == Committed {
				used, overage = used+t.Value, overage+t.Overage
			}
			if t.Status == RolledBack {
				undone += t.Value
			}
		}
		switch {
		case s.ActionCount > s.MaxActions || s.ActionCount < sequence || s.ValueUsed+s.ValueHeld > s.MaxValue:
			return fmt.Sprintf("the limits are broken, or %d transactions are not counted: %+v", sequence, s)
		case s.ValueHeld != held || s.ValueUsed < used || s.ValueOverage != overage:
			return fmt.Sprintf("held %d, used at least %d and overage %d: not %+v", held, used, overage, s)
		case s.ValueCommitted != s.ValueUsed+undone || s.RemainingValue() < 0,
			s.MaxCommitted != nil && s.ValueCommitted+s.ValueHeld > *s.MaxCommitted:
			return fmt.Sprintf("%d was undone, of %+v", undone, s)
		case s.Status == Completed && held > leased:
			return fmt.Sprintf("an ended session holds %d", held-leased)
		}
	}
	return ""
}
