package redisstore

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/suite"
)

// racedTree is a tree that many change at once by two instances, with what was acknowledged to them.
type racedTree struct {
	t         *testing.T
	instances [2]*Store
	tenant
	agents []uuid.UUID
	tokens map[uuid.UUID]AccessToken // of the agents
	most   int                       // sessions

	lock          sync.Mutex   // guards what follows, and all nodes
	nodes         []*modelNode // the root first
	done, refused map[string]int
}

// No session of a tree uses more than its limits with those below it, and when all are closed every one has used what was charged in
// and below it, by batches, leases and renewals too. The trees of the fleet (test/faults) prove the same of the service, also of what is
// shown meanwhile and of suspensions, while instances are killed.
func TestATreeIsExactWhileManyChangeItByTwoInstances(t *testing.T) {
	t.Parallel()
	const before = 20 // sessions below the root
	workers, rounds, sessions := 16, 40, 60
	if suite.Long {
		workers, rounds, sessions = 64, 100, 500
	}
	run := func(t *testing.T, s *Store) {
		r := &racedTree{t: t, instances: [2]*Store{s, anotherInstance(t, s)}, tenant: tenant{key: newOrganization(t, s)},
			tokens: map[uuid.UUID]AccessToken{}, most: sessions, done: map[string]int{}, refused: map[string]int{}}
		for range 8 {
			agent := must(s.CreateAgent(t.Context(), r.key, Agent{Name: "scout", Scopes: []string{scopeDelegate}}, [32]byte{2}, nil))(t)
			r.agents = append(r.agents, agent.ID)
			r.tokens[agent.ID] = must(s.ExchangeSecret(t.Context(), agent.ID, [32]byte{2}, GrantRequest{}))(t).AccessToken
		}
		must(s.SetBudget(t.Context(), r.key, 3000*money.USD, BudgetForever))(t)
		n := NewSession{Agent: r.agents[0], MaxActions: 200_000, MaxValue: 2000 * money.USD, Lifetime: time.Hour, MaxLease: racedLease}
		r.session = must(s.CreateSession(t.Context(), r.key, n))(t)
		r.nodes = []*modelNode{{place: place{r.session.ID, n.Agent}, limits: Delegated{n.MaxActions, n.MaxValue}}}
		first := &racer{r, rand.New(rand.NewPCG(0, 51))}
		for range before { // there is a tree before the root's limits are used up
			first.create(r.nodes[0], Delegated{n.MaxActions / (2 * before), n.MaxValue / (2 * before)})
		}
		var group sync.WaitGroup
		for worker := range workers {
			group.Go(func() {
				p := &racer{r, rand.New(rand.NewPCG(uint64(worker), 51))}
				for range rounds {
					p.act()
				}
			})
		}
		group.Wait()
		for _, what := range []string{"charge", "batch", "begin", "commit", "rollback", "lease", "settle", "create", "top-up", "end"} {
			if r.done[what] == 0 {
				t.Errorf("no %s was done: %v", what, r.done)
			}
		}
		if r.done["create"] <= before || r.refused["charge"] == 0 || r.refused["create"] == 0 {
			t.Errorf("%d were created, refused %v", r.done["create"], r.refused)
		}
		r.close()
		r.checkClosed()
	}
	onRealRedisAndCluster(t, Config{}, run)
}

const racedLease = 10 * time.Second

// closePatience is how long hundreds of sessions may take to close under the race detector, after their leases have run out.
const closePatience = racedLease + 2*time.Minute

// close ends the tree, and again until all are closed: leases that were not settled run out first.
func (r *racedTree) close() {
	r.t.Helper()
	for deadline := time.Now().Add(closePatience); !r.isClosed(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not all sessions were closed in %v", closePatience)
		}
	}
}

// isClosed asks for what has to close, and says whether all has.
func (r *racedTree) isClosed() bool {
	r.t.Helper()
	for _, n := range r.nodes {
		letItClose(r.t, r.instances[0], n.place)
	}
	_, failed := r.instances[0].EndSession(r.t.Context(), r.byKey(), r.session.ID)
	is, unread := r.instances[1].Session(r.t.Context(), r.byKey(), r.session.ID)
	budget, unknown := r.instances[1].Budget(r.t.Context(), r.key)
	err := errors.Join(failed, unread, unknown)
	if err != nil && !isUnanswered(err) {
		r.t.Fatal(err)
	}
	return err == nil && is.delegated() == Delegated{} && budget.Reserved == 0
}

// checkClosed compares every session with what was charged in and below it, and the budget with the root.
func (r *racedTree) checkClosed() {
	r.t.Helper()
	for _, n := range r.nodes {
		is, total := must(r.instances[0].Session(r.t.Context(), r.byKey(), n.session))(r.t), n.total()
		unsure := slices.ContainsFunc(r.nodes, func(m *modelNode) bool {
			return m.unsure && m.any(func(at *modelNode) bool { return at == n })
		})
		if is.Status == Active || is.delegated() != (Delegated{}) || is.ValueHeld != 0 {
			r.t.Errorf("a session is %s, with %s held and %+v delegated", is.Status, is.ValueHeld, is.delegated())
		}
		if used := (Delegated{is.ActionCount, is.ValueUsed}); used != total && !unsure || used.Actions < total.Actions || used.Value < total.Value {
			r.t.Errorf("a session has used %+v, and %+v were charged in and below it", used, total)
		}
		if budget := must(r.instances[0].Budget(r.t.Context(), r.key))(r.t); n.above == nil && budget.Used != is.ValueUsed {
			r.t.Errorf("the budget has %d used, the root %d", budget.Used, is.ValueUsed)
		}
	}
}

// isUnanswered says whether Redis did not answer in time, as on a machine that is too busy, so that it is not known what was done.
func isUnanswered(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown)
}

// note notes the outcome of an operation, and what it charged. This is where no limit may be exceeded.
func (r *racedTree) note(what string, n *modelNode, actions int64, value money.MicroUSD, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	switch {
	case isUnanswered(err):
		n.unsure = true
	case err != nil:
		r.refused[what]++
		if expectedOfTransaction(err) != nil {
			r.t.Errorf("%s: %v", what, err)
		}
	default:
		r.done[what]++
		n.spend(actions, value)
		for at := n; at != nil; at = at.above {
			if total := at.total(); total.Actions > at.limits.Actions || total.Value > at.limits.Value {
				r.t.Errorf("in and below a session %+v are used, and it has at most %+v", total, at.limits)
			}
		}
	}
}

// racer is one of those who change a tree.
type racer struct {
	*racedTree
	random *rand.Rand
}

// act does one step on a session of the tree.
func (p *racer) act() {
	n, c := p.pick()
	switch dice := p.random.IntN(100); {
	case dice < 35:
		_, err := p.either().Charge(p.t.Context(), p.caller(n), n.session, Charge{Count: c.Actions, Value: c.Value})
		p.note("charge", n, c.Actions, c.Value, err)
	case dice < 42:
		p.chargeBatch()
	case dice < 57:
		p.transact(n, c.Value)
	case dice < 70:
		p.lease(n, NewLease{MaxActions: c.Actions, MaxValue: c.Value, Lifetime: racedLease, Partial: dice%2 == 0})
	case dice < 88:
		p.create(n, Delegated{8 * c.Actions, 8 * c.Value})
	case dice < 96:
		p.topUp(n, c)
	case n.above != nil && (n.above.above != nil || p.random.IntN(4) == 0):
		p.note("end", n, 0, 0, errOf(p.either().EndSession(p.t.Context(), p.caller(n), n.session)))
	}
}

func (p *racer) either() *Store { return p.instances[p.random.IntN(2)] }

// caller is the session's agent or the API key.
func (p *racer) caller(n *modelNode) Caller {
	if p.random.IntN(2) == 0 {
		return Caller{Token: new(p.tokens[n.agent])}
	}
	return p.byKey()
}

// pick draws a session, and an amount of up to a fortieth of its limits, or now and then of more than all of them.
func (p *racer) pick() (*modelNode, Delegated) {
	p.lock.Lock()
	defer p.lock.Unlock()
	n := p.nodes[p.random.IntN(len(p.nodes))]
	if p.random.IntN(10) == 0 {
		return n, Delegated{n.limits.Actions + 1, n.limits.Value + 1}
	}
	return n, Delegated{1 + p.random.Int64N(n.limits.Actions/40+1), 1 + money.MicroUSD(p.random.Int64N(int64(n.limits.Value)/40+1))}
}

func (p *racer) chargeBatch() {
	nodes, charges := make([]*modelNode, 3), make([]BatchCharge, 3)
	for i := range nodes {
		n, c := p.pick()
		nodes[i], charges[i] = n, BatchCharge{n.session, Charge{Count: c.Actions, Value: c.Value}}
	}
	outcomes, err := p.either().ChargeBatch(p.t.Context(), p.byKey(), charges, nil)
	for i, n := range nodes {
		if err == nil {
			p.note("batch", n, charges[i].Count, charges[i].Value, outcomes[i].Err)
		} else {
			p.note("batch", n, 0, 0, err)
		}
	}
}

// transact begins a transaction, and commits it or rolls it back.
func (p *racer) transact(n *modelNode, value money.MicroUSD) {
	asked := NewTransaction{Session: n.session, ActionType: "call", PreState: "{}", Value: value, Lifetime: time.Hour}
	begun, err := p.either().Begin(p.t.Context(), p.tokens[n.agent], asked)
	if p.note("begin", n, 1, 0, err); err != nil {
		return
	}
	if p.random.IntN(3) == 0 {
		p.note("rollback", n, 0, 0, errOf(p.either().Rollback(p.t.Context(), p.byKey(), begun.ID, Rollback{})))
		return
	}
	cost := money.MicroUSD(p.random.Int64N(2*int64(value) + 1))
	committed, err := p.either().Commit(p.t.Context(), p.tokens[n.agent], begun.ID, Commit{Value: &cost})
	p.note("commit", n, 0, committed.Value, err)
}

// lease settles a lease for less than it has, or for more, and may renew it.
func (p *racer) lease(n *modelNode, asked NewLease) {
	granted, err := p.either().GrantLease(p.t.Context(), p.caller(n), n.session, asked)
	p.note("lease", n, 0, 0, err)
	for l := &granted; err == nil && l != nil; {
		settlement := NewSettlement{ActionCount: p.random.Int64N(l.MaxActions + 1), ValueUsed: money.MicroUSD(p.random.Int64N(int64(l.MaxValue)*3/2 + 1))}
		if p.random.IntN(3) == 0 {
			settlement.Renew = &asked
		}
		var settled Lease
		if settled, err = p.either().SettleLease(p.t.Context(), p.byKey(), l.ID, settlement); err != nil {
			p.note("settle", n, 0, 0, err)
			return
		}
		is := *settled.Settlement
		if is.Late { // what a lease of a session that is over had may stay spent in full
			err = ErrOutcomeUnknown
		}
		p.note("settle", n, is.ActionCount-is.OverageActions, is.ValueUsed-is.Overage, err)
		l = is.Renewed
	}
}

// create creates a child for an agent drawn for it, in four levels.
func (p *racer) create(parent *modelNode, may Delegated) {
	p.lock.Lock()
	full := len(p.nodes) >= p.most || parent.above != nil && parent.above.above != nil && parent.above.above.above != nil
	p.lock.Unlock()
	if full {
		return
	}
	made, err := p.either().CreateChildSession(p.t.Context(), p.caller(parent), NewSession{Agent: p.agents[p.random.IntN(len(p.agents))],
		Parent: parent.session, MaxActions: may.Actions, MaxValue: may.Value, Lifetime: time.Hour, MaxLease: racedLease})
	if p.note("create", parent, 0, 0, err); err != nil {
		return
	}
	is, err := p.either().Session(p.t.Context(), p.byKey(), parent.session)
	value, actions := is.ValueUsed+is.ValueHeld+is.delegated().Value, is.ActionCount+is.delegated().Actions
	if err == nil && (value > is.MaxValue || actions > is.MaxActions) {
		p.t.Errorf("a session counts more than its limits: %+v", is.Usage)
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	child := &modelNode{place: place{made.ID, made.Agent}, above: parent, limits: may}
	parent.below, p.nodes = append(parent.below, child), append(p.nodes, child)
}

func (p *racer) topUp(n *modelNode, more Delegated) {
	raise := func(by Delegated) {
		p.lock.Lock()
		defer p.lock.Unlock()
		n.limits = Delegated{n.limits.Actions + by.Actions, n.limits.Value + by.Value}
	}
	raise(more)
	_, err := p.either().ChangeLimits(p.t.Context(), p.key, n.session, NewLimits{AddActions: &more.Actions, AddValue: &more.Value})
	if p.note("top-up", n, 0, 0, err); err != nil && !isUnanswered(err) {
		raise(Delegated{-more.Actions, -more.Value})
	}
}
