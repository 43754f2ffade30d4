package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"remit/money"
	"remit/test/redistest"
	"remit/test/suite"
)

const (
	historyClients    = 8
	historyOperations = 500
)

// Eight concurrent clients call two instances of the service. There must be an order of the calls, each at some time
// between its call and its return, in which the model gives the same answers. A check has no time limit: how many steps it takes
// is bounded, see TestACheckTakesBoundedSteps.
func TestConcurrentHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	redistest.SkipIfShort(t)
	s := openLeastPrivileged(t, Config{}, realRedis)
	const parts = 4
	histories := 12
	if suite.Long {
		histories = 100
	}
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			r := &recorder{instances: [2]*Store{s, anotherInstance(t, s)}}
			r.w, r.m = newFixture(t, s, peek(t, s))
			shares := part%2 == 1 // one instance's calls share pipelines and commands
			if shares {
				crowd(t, r.instances[1])
			}
			for i := range histories / parts {
				seed := rand.Uint64()
				m, history := r.record(t, seed)
				if !porcupine.CheckOperations(checker(m), history) {
					t.Errorf("history %d of seed %d is not linearizable; %s", i, seed, stuckAt(m, history))
				}
			}
			if shares && redistest.Gathered(t, r.instances[1].client, "remit_redis_merged_calls")[""] == 0 {
				t.Error("no calls shared a command")
			}
		})
	}
}

// No answer of a history may be another than the model's, whose rules the traces prove (testdata/traces).
func TestAHistoryWithAnotherAnswerIsNotLinearizable(t *testing.T) {
	t.Parallel()
	session, first, second, granted, renewed := uuid.UUID{1}, uuid.UUID{2}, uuid.UUID{3}, uuid.UUID{4}, uuid.UUID{5}
	keyed := step{op: Charge{Count: 1, Value: 10}, target: session, key: "key", request: 1}
	lease := NewLease{MaxActions: 2, MaxValue: 20, Lifetime: time.Hour}
	read := sequentialStep{step{op: readSessionStep{}, target: session}, uuid.Nil}
	start := time.UnixMilli(0)
	blank := model{start: start, now: start, scopes: []string{"read"}, outcomes: map[idempotencyKey]*firstOutcome{}}
	history := sequential(blank, []sequentialStep{
		{step{op: NewSession{MaxActions: 9, MaxValue: 130, MaxLease: time.Hour, Lifetime: 9 * time.Hour}}, session},
		{step{op: NewTransaction{Session: session, Value: 50, Lifetime: 5 * time.Hour}}, first},
		{keyed, uuid.Nil},
		{keyed, uuid.Nil},
		{step{op: lease, target: session}, granted},
		{step{op: Charge{Count: 1, Value: 51}, target: session}, uuid.Nil}, // does not fit
		read,
		{step{op: NewSettlement{ActionCount: 1, ValueUsed: 5, Renew: &lease}, target: granted}, renewed},
		{step{op: Commit{Value: new(money.MicroUSD(110))}, target: first}, uuid.Nil}, // some of it is overage
		{step{op: time.Hour}, uuid.Nil}, // the lease expires
		{step{op: readLeaseStep{}, target: renewed}, uuid.Nil},
		{step{op: NewSettlement{ActionCount: 9, ValueUsed: 45}, target: renewed}, uuid.Nil}, // late, and more than fits
		{step{op: Rollback{Scopes: []string{"read"}}, target: first}, uuid.Nil},
		{step{op: NewTransaction{Session: session, Lifetime: time.Hour}}, second},
		{step{op: endStep{}, target: session}, uuid.Nil},
		{step{op: readTransactionStep{}, target: second}, uuid.Nil},
		read,
	})
	if !porcupine.CheckOperations(checker(&blank), history) {
		t.Fatal("the model's own answers are no history")
	}
	for place, op := range history {
		is, next := op.Output.(outcome), history[(place+1)%len(history)].Output.(outcome)
		for _, other := range []outcome{{is.value, !is.replayed, is.err}, {err: errors.New("another error")}, next} {
			wrong := slices.Clone(history)
			wrong[place].Output = other
			if porcupine.CheckOperations(checker(&blank), wrong) {
				t.Errorf("%v:\n%+v is as legal as\n%+v", op.Input, other, is)
			}
		}
	}
}

// Orders whose difference no answer shows lead to equal states. Otherwise each pair of concurrent calls would double the states
// that a check goes through when the history has no order, or when a call long before has to come elsewhere.
func TestACheckTakesBoundedSteps(t *testing.T) {
	t.Parallel()
	const pairs, most = 14, 400
	session, transaction, start := uuid.UUID{1}, uuid.UUID{3}, time.UnixMilli(0)
	blank := model{start: start, now: start, outcomes: map[idempotencyKey]*firstOutcome{}}
	opening := []sequentialStep{
		{step{op: NewSession{MaxActions: 1000, MaxValue: 1000, MaxLease: 10_000 * time.Hour, Lifetime: 10_000 * time.Hour}}, session},
		{step{op: NewTransaction{Session: session, Value: 1, Lifetime: 9_000 * time.Hour}}, transaction},
		{step{op: Commit{}, target: transaction}, uuid.Nil},
	}
	lease := func(int) step {
		return step{op: NewLease{MaxActions: 1, MaxValue: 1, Lifetime: 9_000*time.Hour + time.Hour/4}, target: session}
	}
	refused := func(i int) step {
		return step{op: Commit{}, target: transaction, key: fmt.Sprint(i), request: i}
	}
	passed := func(int) step { return step{op: time.Hour} }
	for name, kinds := range map[string][2]func(int) step{"grants": {lease, lease}, "refusals while time passes": {refused, passed}} {
		steps := slices.Clone(opening)
		for i := range pairs {
			for k, kind := range kinds {
				steps = append(steps, sequentialStep{kind(i + 1), uuid.UUID{2, byte(i), byte(k)}})
			}
		}
		read := step{op: readSessionStep{}, target: session}
		history := sequential(blank, append(steps, sequentialStep{read, uuid.Nil}))
		for i := len(opening); i < len(history)-1; i += 2 {
			history[i+1].Call, history[i].Return = history[i].Call, history[i+1].Return
			history[i+1].ClientId = 1
		}
		last := &history[len(history)-1]
		taken, counted := 0, checker(&blank)
		counted.Step = func(state, input, output any) (bool, any) {
			if taken++; taken > most {
				return false, state
			}
			return checker(&blank).Step(state, input, output)
		}
		if !porcupine.CheckOperations(counted, history) {
			t.Fatalf("%s have no order", name)
		}
		wrong := last.Output.(outcome).value.(Session)
		wrong.ActionCount++
		last.Output = outcome{value: wrong}
		if taken = 0; porcupine.CheckOperations(counted, history) || taken > most {
			t.Errorf("%s: the check takes %d steps, or finds an order", name, taken)
		}
	}
}

// sequential returns the history of one client that makes the steps, as the model answers them, in the store's time.
func sequential(m model, steps []sequentialStep) (history []porcupine.Operation) {
	for i, s := range steps {
		answer := m.do(s.step, s.id).at(func(t time.Time) time.Time {
			if t.IsZero() {
				return t
			}
			return t.Add(m.start.Sub(m.now))
		})
		history = append(history, porcupine.Operation{Input: s.step, Output: answer, Call: int64(2 * i), Return: int64(2*i + 1)})
	}
	return history
}

type sequentialStep struct {
	step step
	id   uuid.UUID // of what it creates
}

// checker returns the specification against which porcupine checks histories that begin with m. Its states are immutable
// models.
func checker(m *model) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return m },
		Step: func(state, input, output any) (bool, any) {
			next := state.(*model).clone()
			want, got := next.follow(input.(step), output.(outcome))
			if len(next.leases) > len(state.(*model).leases) { // no answer depends on which was granted first
				slices.SortFunc(next.leases, func(a, b *Lease) int { return bytes.Compare(a.ID[:], b.ID[:]) })
			}
			return got.is(want), next
		},
		Equal: func(a, b any) bool { return a.(*model).equal(b.(*model)) },
		Hash:  func(state any) uint64 { return state.(*model).hash() },
	}
}

func (m *model) clone() *model {
	c := *m
	c.sessions, c.transactions, c.leases = slices.Clone(m.sessions), slices.Clone(m.transactions), slices.Clone(m.leases)
	return &c
}

// equal says whether two models with the same origin are in the same state. The checker compares millions of states, so
// this compares cheap fields first and avoids reflection.
func (m *model) equal(other *model) bool {
	return m.now.Equal(other.now) &&
		slices.EqualFunc(m.sessions, other.sessions, func(a, b Session) bool {
			return a.Usage == b.Usage && a.ValueCommitted == b.ValueCommitted && a.ValueOverage == b.ValueOverage && a.Status == b.Status && a.Ended.Equal(b.Ended)
		}) &&
		slices.EqualFunc(m.transactions, other.transactions, func(a, b *Transaction) bool { return a == b || *a == *b }) &&
		slices.EqualFunc(m.leases, other.leases, func(a, b *Lease) bool { return a == b || reflect.DeepEqual(a, b) }) &&
		maps.EqualFunc(m.outcomes, other.outcomes, func(a, b *firstOutcome) bool {
			return a == b || a.request == b.request && a.outcome.is(b.outcome) && (a.when.Equal(b.when) || a.outcome.isTimeless())
		})
}

// isTimeless reports whether the outcome has no time, so that its repetition is the same whenever it came first.
func (o outcome) isTimeless() bool {
	return o.is(o.at(func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(time.Hour)
	}))
}

// hash distinguishes most unequal states.
func (m *model) hash() uint64 {
	h := uint64(len(m.transactions))
	mix := func(n int64) { h = (h ^ uint64(n)) * 0x9E3779B97F4A7C15 }
	for _, s := range m.sessions {
		mix(s.ActionCount)
		mix(int64(s.ValueUsed))
		mix(int64(s.ValueHeld))
		mix(int64(s.ValueOverage))
		mix(int64(len(s.Status)))
	}
	for i := range m.transactions {
		mix(int64(len(m.transactions[i].Status)))
	}
	for _, l := range m.leases {
		mix(int64(len(l.Status)))
	}
	return h
}

// stuckAt describes the longest order that was found: its end, and the operations that could not follow.
func stuckAt(m *model, history []porcupine.Operation) string {
	_, info := porcupine.CheckOperationsVerbose(checker(m), history, 0)
	var longest []porcupine.Operation
	for _, found := range info.PartialLinearizationsOperations()[0] {
		if len(found) > len(longest) {
			longest = found
		}
	}
	text := fmt.Sprintf("an order of %d operations is found", len(longest))
	show := func(what string, ops []porcupine.Operation) {
		text += "\n" + what + ":"
		for _, op := range ops {
			text += fmt.Sprintf("\nclient %d from %d to %d: %v\n\t%+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
	}
	show("its last", longest[max(0, len(longest)-4*historyClients):])
	others := slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool {
		return slices.ContainsFunc(longest, func(o porcupine.Operation) bool { return o.ClientId == op.ClientId && o.Call == op.Call })
	})
	slices.SortFunc(others, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	show("the first of the others", others[:min(historyClients, len(others))])
	return text
}

// recorder records what concurrent clients do to one session, through two instances.
type recorder struct {
	w         *fixture
	m         *model
	instances [2]*Store
}

// record returns a history and its initial model. The seed determines what the clients do, but not when.
func (r *recorder) record(t *testing.T, seed uint64) (*model, []porcupine.Operation) {
	t.Helper()
	c := &clients{recorder: r, begun: time.Now()}
	random := rand.New(rand.NewPCG(seed, historyClients))
	m := &model{start: r.m.start, now: r.m.start, agent: r.m.agent, scopes: r.m.scopes, outcomes: r.m.outcomes}
	create := step{op: NewSession{MaxActions: 150 + random.Int64N(400), MaxValue: money.MicroUSD(50 + random.IntN(400)),
		MaxCommitted: new(money.MicroUSD(100 + random.IntN(1500))), MaxLease: 10_000 * time.Hour,
		Lifetime: 10_000*time.Hour + time.Hour/2}}
	created := r.w.do(t.Context(), r.w.store, create)
	if want, got := m.follow(create, created); !got.is(want) {
		t.Fatalf("%v: %v, want %v", create, got, want)
	}
	c.session = created.id()
	var wg sync.WaitGroup
	for client := range historyClients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(client)))
			for i := client; i < historyOperations; i += historyClients {
				c.do(t, client, c.next(random, i))
			}
		})
	}
	wg.Wait()
	return m, c.history
}

// clients operate on a session concurrently.
type clients struct {
	*recorder
	session uuid.UUID
	begun   time.Time

	lock         sync.Mutex
	history      []porcupine.Operation
	transactions []uuid.UUID
	leases       []uuid.UUID
	keyed        []step
}

// do executes a step, and records the times of its call and return, and its outcome.
func (c *clients) do(t *testing.T, client int, st step) {
	call := time.Since(c.begun)
	o := c.w.do(context.Background(), c.instances[client%len(c.instances)], st)
	returned := time.Since(c.begun)
	if errors.Is(o.err, ErrUnavailable) || errors.Is(o.err, ErrOutcomeUnknown) {
		t.Error(o.err) // such an outcome has no place in an order
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.history = append(c.history, porcupine.Operation{
		ClientId: client, Input: st, Call: int64(call), Output: o, Return: int64(returned),
	})
	if begun, ok := o.value.(Transaction); ok && begun.Status == Pending {
		c.transactions = append(c.transactions, begun.ID)
	}
	if l, ok := o.value.(Lease); ok {
		c.leases = append(c.leases, granted(l)...)
	}
}

// next returns operation i of the history.
func (c *clients) next(random *rand.Rand, i int) step {
	switch i {
	case historyOperations / 4, historyOperations / 2, historyOperations * 2 / 3: // some holds expire meanwhile
		return step{op: time.Hour}
	case historyOperations * 4 / 5:
		return step{op: endStep{}, target: c.session}
	}
	amount := func(most int) money.MicroUSD { return money.MicroUSD(random.IntN(most)) }
	switch kind := random.IntN(100); {
	case kind < 4:
		charges := []BatchCharge{{c.session, Charge{Count: 5, Value: amount(8)}}, {c.session, Charge{Count: 1, Value: amount(8)}}}
		return c.maybeKeyed(random, step{op: charges, byAPIKey: random.IntN(2) == 0})
	case kind < 15:
		return c.maybeKeyed(random, step{op: Charge{Count: 1 + random.Int64N(2), Value: amount(8)}, target: c.session})
	case kind < 22:
		return c.maybeKeyed(random, step{op: drawLease(random), target: c.session})
	case kind < 37:
		return c.useLease(random)
	case kind < 57:
		return c.maybeKeyed(random, step{op: NewTransaction{
			Session: c.session, Value: amount(20), Lifetime: []time.Duration{0, 1, 1000}[random.IntN(3)]*time.Hour + time.Hour/2,
			Irreversible: random.IntN(4) == 0,
		}})
	case kind < 80:
		return c.finish(random)
	case kind < 85:
		return c.again(random)
	case kind < 86:
		return step{op: NewLimits{MaxValue: new(200 + amount(400))}, target: c.session, byAPIKey: true}
	case kind < 88:
		return c.maybeKeyed(random, step{op: NewLimits{AddValue: new(amount(30))}, target: c.session, byAPIKey: true})
	default:
		return step{op: readSessionStep{}, target: c.session, byAPIKey: random.IntN(4) == 0}
	}
}

// finish commits, rolls back or reads one of the latest transactions. Other clients may do the same concurrently.
func (c *clients) finish(random *rand.Rand) step {
	c.lock.Lock()
	latest := c.transactions[max(0, len(c.transactions)-12):]
	var st step
	if len(latest) > 0 {
		st.target = latest[random.IntN(len(latest))]
	}
	c.lock.Unlock()
	switch kind := random.IntN(10); {
	case st.target == uuid.Nil:
		return step{op: readSessionStep{}, target: c.session}
	case kind < 3:
		st.op = Commit{}
	case kind < 6:
		st.op = Commit{Value: new(money.MicroUSD(random.IntN(60)))}
	case kind < 8:
		st.op = Rollback{Scopes: []string{"write"}}
	case kind < 9:
		st.op = NewHold{Value: new(money.MicroUSD(random.IntN(30))),
			Lifetime: new(time.Duration(random.IntN(3))*time.Hour + time.Hour/2)}
	default:
		st.op = readTransactionStep{}
		return st
	}
	return c.maybeKeyed(random, st)
}

func (c *clients) maybeKeyed(random *rand.Rand, st step) step {
	if random.IntN(6) == 0 {
		c.lock.Lock()
		defer c.lock.Unlock()
		st.request = len(c.keyed) + 1
		st.key = fmt.Sprint(c.session, " ", st.request)
		c.keyed = append(c.keyed, st)
	}
	return st
}

// again repeats a recent request with its idempotency key, possibly concurrently with another client.
func (c *clients) again(random *rand.Rand) step {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.keyed) == 0 {
		return step{op: readSessionStep{}, target: c.session}
	}
	return c.keyed[max(0, len(c.keyed)-1-random.IntN(3))]
}

// drawLease draws a lease to ask for. A quarter of them expire when time passes next, others later or never.
func drawLease(random *rand.Rand) NewLease {
	return NewLease{
		MaxActions: random.Int64N(4), MaxValue: money.MicroUSD(1 + random.IntN(15)), Partial: random.IntN(2) == 0,
		Lifetime: []time.Duration{0, 1, 1000, 1000}[random.IntN(4)]*time.Hour + time.Hour/4,
	}
}

// useLease settles or reads one of the latest leases. Other clients may do the same concurrently, mostly with the same
// numbers. A lease that expired meanwhile is settled late.
func (c *clients) useLease(random *rand.Rand) step {
	c.lock.Lock()
	latest := c.leases[max(0, len(c.leases)-6):]
	var id uuid.UUID
	if len(latest) > 0 {
		id = latest[random.IntN(len(latest))]
	}
	c.lock.Unlock()
	switch kind := random.IntN(10); {
	case id == uuid.Nil:
		return c.maybeKeyed(random, step{op: drawLease(random), target: c.session})
	case kind < 2:
		return step{op: readLeaseStep{}, target: id, byAPIKey: kind == 0}
	}
	n := NewSettlement{ActionCount: int64(id[8] % 5), ValueUsed: money.MicroUSD(id[9] % 20)}
	if random.IntN(8) == 0 {
		n.ActionCount++
	}
	if random.IntN(2) == 0 {
		n.Renew = new(drawLease(random))
	}
	return c.maybeKeyed(random, step{op: n, target: id})
}
