package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
	"remit/internal/redistest"
	"remit/money"
)

// modelSteps is how many steps the store and the model are compared in, at least. The race detector has seen all there is
// to see after a few, and makes each five times as dear: with it a tenth is played, and make test plays the whole without.
const modelSteps = 200_000

// Random sequences of all operations have the same outcomes in the store as in the model, and leave the same state.
func TestTheStoreDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	s := openLeastPrivileged(t, Config{}, realRedis)
	books := &tally{outcomes: map[string]int{}}
	wanted, rounds := modelSteps, 9
	if raceDetector {
		wanted, rounds = modelSteps/10, 1
	}
	t.Run("sequences", func(t *testing.T) {
		for i := range 8 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				// 100 checks of 9 times 30 steps on average: 27,000, and never far from it.
				playSequences(t, s, rounds, books)
			})
		}
	})
	if t.Failed() {
		return
	}
	t.Logf("%d steps: %v", books.steps, books.outcomes)
	if books.steps < wanted {
		t.Errorf("%d steps, want %d: -rapid.checks and -rapid.steps must be as they are by default", books.steps, wanted)
	}
	if raceDetector {
		return // some outcomes are too rare for so few steps
	}
	for _, what := range everyOutcome {
		if books.outcomes[what] == 0 {
			t.Errorf("%q never came out, and so was not tested", what)
		}
	}
}

func TestTheStoreDoesWhatTheModelDoesOnEachRedis(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		playSequences(t, s, 1, &tally{outcomes: map[string]int{}})
	})
}

// playSequences compares store and model in 100 worlds, in so many rounds of 30 steps on average in each.
func playSequences(t *testing.T, s *Store, rounds int, books *tally) {
	t.Helper()
	unrestricted := peek(t, s)
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer(t, s, unrestricted, books)
		for range rounds { // and not one long one: rapid looks for a short sequence that fails by leaving steps out
			t.Repeat(map[string]func(*rapid.T){"": p.check, "step": p.step})
		}
		p.w.wantStored(t, p.m)
	})
}

// everyOutcome is what must come out now and then, for the test to say anything about it.
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
	"readTransactionStep", "readTransactionStep: no such transaction", "Query", "Query: no such session", "Duration",
}

// tally counts what came out of how many steps.
type tally struct {
	lock     sync.Mutex
	steps    int
	outcomes map[string]int
}

func (b *tally) count(m *model, st step, o outcome) {
	what := strings.TrimPrefix(strings.Replace(fmt.Sprintf("%T", st.asks), "redisstore.", "", 1), "time.")
	if o.replayed {
		what += " again"
	}
	t, ok := o.value.(Transaction)
	if ok && t.Overage > 0 {
		what += " with overage"
	}
	if s := m.session(t.Session); ok && s != nil && s.Status == Expired {
		what += " in an expired session"
	} else if ok && s != nil && s.Status == Completed {
		what += " in a completed session"
	}
	if _, commits := st.asks.(Commit); commits && t.Late {
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

// player does random steps to a world and to its model.
type player struct {
	w     *world
	m     *model
	books *tally
	unit  money.MicroUSD // amounts are small multiples of it, so that limits are met often
	keyed []step         // what was asked for with an idempotency key
}

func newPlayer(t *rapid.T, s *Store, unrestricted redis.UniversalClient, books *tally) *player {
	p := &player{books: books}
	p.w, p.m = newWorld(t, s, unrestricted)
	// The large one makes amounts that a careless script writes as 1e+14.
	p.unit = rapid.SampledFrom([]money.MicroUSD{1, 1_000_000_000_007}).Draw(t, "unit")
	first := p.newSession(t)
	first.Scopes = nil // which cannot be refused
	p.follow(t, step{asks: first, byAPIKey: true})
	return p
}

// step does one random step to both, and fails the test if they differ.
func (p *player) step(t *rapid.T) {
	p.follow(t, p.draw(t, rapid.SampledFrom(stepKinds).Draw(t, "kind")))
}

func (p *player) follow(t *rapid.T, st step) {
	answer := p.w.do(context.Background(), p.w.store, st)
	want, got := p.m.follow(st, answer)
	p.books.count(p.m, st, want)
	if !got.is(want) {
		t.Fatalf("%v:\n%v, want\n%v", st, got, want)
	}
}

// check holds the model against what no sequence may bring about, and now and then the store against the model.
func (p *player) check(t *rapid.T) {
	if fault := p.m.fault(); fault != "" {
		t.Fatal(fault)
	}
	if rapid.IntRange(0, 31).Draw(t, "look") == 20 {
		p.w.wantStored(t, p.m)
	}
}

// fault says what must never be, of the model itself; "" for nothing.
func (m *model) fault() string {
	for _, s := range m.sessions {
		var held, used, overage, undone money.MicroUSD
		sequence := int64(0)
		for _, t := range m.transactions {
			if t.Session != s.ID {
				continue
			}
			if sequence++; t.Sequence != sequence {
				return fmt.Sprintf("transaction %d of a session has the sequence number %d", sequence, t.Sequence)
			}
			held += t.Held
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
		case s.Status == Completed && held > 0:
			return fmt.Sprintf("an ended session holds %d", held)
		}
	}
	return ""
}
