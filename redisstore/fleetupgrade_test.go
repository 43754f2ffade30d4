package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/test/suite"
)

// An instance of the version before knows no trees, budgets, limits of agents or suspensions. docs/operations.md says what it does not
// enforce. What these tests require is that what it does corrupts no books and stops nobody.

// treeBeside is a tree that two versions use at once.
type treeBeside struct {
	versions [2]version
	nodes    []*nodeBeside // the root first, parents before their children
}

// nodeBeside is a session of the tree, and what was charged to it alone.
type nodeBeside struct {
	tenant
	token AccessToken
	above int // its parent's index

	lock sync.Mutex
	own  Delegated
}

func (n *nodeBeside) add(actions int64, value money.MicroUSD) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.own = Delegated{n.own.Actions + actions, n.own.Value + value}
}

// use charges a session in one of several ways, each step by one of the versions.
func (b *treeBeside) use(ctx context.Context, n *nodeBeside, random *rand.Rand) error {
	first := random.IntN(2)
	one, other := b.versions[first], b.versions[1-first]
	value, id := money.MicroUSD(random.Int64N(20)), n.session.ID
	switch random.IntN(4) {
	case 0:
		err := one.batch(ctx, n.token, id, []Charge{{Count: 1, Value: value}})
		if err == nil {
			n.add(1, value)
		}
		return err
	case 1:
		_, err := one.charge(ctx, n.token, id, Charge{Count: 2, Value: value})
		if err == nil {
			n.add(2, value)
		}
		return err
	}
	begun, err := one.begin(ctx, n.token, NewTransaction{Session: id, Value: value, Lifetime: time.Hour, ActionType: "pay", PreState: "{}"})
	switch {
	case err != nil:
		return err
	case random.IntN(2) == 0:
		n.add(1, 0)
		return other.rollback(ctx, n.token, id, begun)
	}
	n.add(1, value/2)
	return other.commit(ctx, n.token, id, begun, value/2)
}

// total is what was charged in and below a session.
func (b *treeBeside) total(of int) Delegated {
	sum := b.nodes[of].own
	for i, n := range b.nodes {
		if i > of && n.above == of {
			below := b.total(i)
			sum = Delegated{sum.Actions + below.Actions, sum.Value + below.Value}
		}
	}
	return sum
}

func newTreeBeside(t *testing.T, s *Store) *treeBeside {
	t.Helper()
	w := newTenant(t, s, NewSession{MaxActions: 1})
	must(s.SetBudget(t.Context(), w.key, 10_000, BudgetForever))(t)
	w.session = must(s.CreateSession(t.Context(), w.key, NewSession{Agent: w.agent.ID, MaxActions: 1000, MaxValue: 2000, Lifetime: time.Hour}))(t)
	b := &treeBeside{versions: [2]version{versionBeside(t, s), present{s}}}
	b.nodes = []*nodeBeside{{tenant: w, token: w.exchange(t, s).AccessToken}}
	for _, above := range []int{0, 0, 1, 1} {
		agent := newAgents(t, s, w.key, 1)[0]
		parent := b.nodes[above].session
		child := must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: agent.ID, Parent: parent.ID,
			MaxActions: parent.MaxActions / 3, MaxValue: parent.MaxValue / 3, Lifetime: time.Hour, WithinParent: true}))(t)
		own := tenant{key: w.key, agent: agent, session: child, secret: [32]byte{2}}
		b.nodes = append(b.nodes, &nodeBeside{tenant: own, token: own.exchange(t, s).AccessToken, above: above})
	}
	return b
}

// versionBeside opens the version before on the same Redis.
func versionBeside(t *testing.T, s *Store) before {
	t.Helper()
	old := must(Open(s.config))(t)
	t.Cleanup(func() { _ = old.Close() })
	return before{old}
}

func TestATreeIsExactBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	rounds := 60
	if suite.Long {
		rounds = 1000
	}
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		b := newTreeBeside(t, s)
		var workers sync.WaitGroup
		for worker := range 6 {
			workers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 15))
				for range rounds {
					if err := b.use(t.Context(), b.nodes[random.IntN(len(b.nodes))], random); err != nil && !isLimit(err) {
						t.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		root, old := b.nodes[0], b.versions[0]
		for _, i := range []int{2, 3} { // a child and a grandchild are ended by the version before
			wantError(t, "an end", old.end(t.Context(), b.nodes[i].token, b.nodes[i].session.ID), nil)
		}
		must(s.EndSession(t.Context(), root.byKey(), root.session.ID))(t)
		for i, n := range b.nodes {
			total := b.total(i)
			root.wantBooks(t, s, n.session.ID, total.Actions, total.Value, Delegated{})
		}
		if is := must(s.Budget(t.Context(), root.key))(t); is.Reserved != 0 || is.Used != b.total(0).Value {
			t.Errorf("%s was charged, and the budget is %+v", b.total(0).Value, is)
		}
	})
}

// The version before ends no descendants. Who needs the part does, and the books stay exact.
func TestWhatTheVersionBeforeEndedComesBackWithItsDescendants(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *Store, step func(time.Duration)) {
		w, old := newTenant(t, s, NewSession{MaxActions: 50, MaxValue: 100, Lifetime: 100 * 24 * time.Hour}), versionBeside(t, s)
		branch := []Session{w.session}
		for range 3 {
			branch = append(branch, must(s.CreateChildSession(t.Context(), w.byKey(), NewSession{Agent: w.agent.ID,
				Parent: branch[len(branch)-1].ID, MaxActions: 20, MaxValue: 80, Lifetime: 24 * time.Hour, WithinParent: true}))(t))
		}
		token, leaf := w.exchange(t, s).AccessToken, branch[3].ID
		must(old.charge(t.Context(), token, leaf, Charge{Count: 1, Value: 3}))(t)
		wantError(t, "the end", old.end(t.Context(), token, branch[1].ID), nil)
		must(old.charge(t.Context(), token, leaf, Charge{Count: 1, Value: 1}))(t) // until then the others go on within their limits
		must(s.Charge(t.Context(), byToken(Grant{AccessToken: token}), leaf, Charge{Count: 1, Value: 1}))(t)
		w.wantRoomWithinAMinute(t, s, step, 95)
		for _, session := range branch[1:] {
			w.wantBooks(t, s, session.ID, 3, 5, Delegated{})
			_, err := old.charge(t.Context(), token, session.ID, Charge{Count: 1})
			var over *NotActiveError
			if !errors.As(err, &over) {
				t.Errorf("the version before charges what was ended above: %v", err)
			}
		}
		w.wantBooks(t, s, w.session.ID, 4, 100, Delegated{})
	})
}

// The version before judges and counts no limits of an agent, and gives nothing back to a day. This version goes on with what it has
// counted itself: it never passes a limit, refuses nothing below it, and waits for no hold that the other has settled.
func TestLimitsOfAnAgentGoOnBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w, old := limitedTenant(t, s, perDay(100), NewSession{MaxValue: 10_000, Lifetime: 100 * day}), versionBeside(t, s)
		token := w.exchange(t, s).AccessToken
		for range 2 {
			must(old.charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: 70}))(t)
		}
		w.wantToday(t, s, "charged by the version before", 0)
		wantAgentLimit(t, "a charge of this one", w.chargeValue(t, s, 60), "")
		for value, settle := range map[money.MicroUSD]func(transaction uuid.UUID) error{
			25: func(id uuid.UUID) error { return old.commit(t.Context(), token, w.session.ID, id, 5) },
			10: func(id uuid.UUID) error { return old.rollback(t.Context(), token, w.session.ID, id) },
		} {
			wantError(t, "a settlement by the version before", settle(w.begin(t, s, token, value).ID), nil)
		}
		w.wantToday(t, s, "settled by the version before", 95)
		wantAgentLimit(t, "beyond the day", w.chargeValue(t, s, 6), LimitValuePerDay)
		wantAgentLimit(t, "the rest of the day", w.chargeValue(t, s, 5), "")

		clock(day)
		w.begin(t, s, token, 40) // for an hour
		clock(day + 2*time.Hour)
		must(old.charge(t.Context(), token, w.session.ID, Charge{Count: 1}))(t) // it releases the hold
		wantAgentLimit(t, "with a hold that the version before released", w.chargeValue(t, s, 61), LimitValuePerDay)
		wantAgentLimit(t, "the rest of the day", w.chargeValue(t, s, 60), "")

		clock(2 * day)
		other := w.another(t, s, NewSession{MaxValue: 10_000, Lifetime: 100 * day})
		other.begin(t, s, token, 40)
		wantError(t, "the end", old.end(t.Context(), token, other.session.ID), nil)
		clock(2*day + 2*time.Hour)
		wantAgentLimit(t, "with holds of a session that it ended", w.chargeValue(t, s, 61), LimitValuePerDay)
		wantAgentLimit(t, "the rest of the day", w.chargeValue(t, s, 60), "")

		clock(3 * day)
		wantAgentLimit(t, "more than a day", w.chargeValue(t, s, 101), LimitValuePerDay)
		wantAgentLimit(t, "a whole day", w.chargeValue(t, s, 100), "")
	})
}

func TestOpenSessionsOfAnAgentBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	fromMidnight(t, func(t *testing.T, s *Store, clock func(time.Duration)) {
		w, old := limitedTenant(t, s, AgentLimits{OpenSessions: new(int64(2))}, NewSession{MaxValue: 1000}), versionBeside(t, s)
		token := w.exchange(t, s).AccessToken
		n := NewSession{Agent: w.agent.ID, MaxActions: 1, Lifetime: time.Minute}
		extra := must(old.create(t.Context(), w, n))(t) // it counts none
		wantError(t, "the end", old.end(t.Context(), token, extra), nil)
		second := must(s.CreateSession(t.Context(), w.key, n))(t)
		_, err := s.CreateSession(t.Context(), w.key, n)
		wantAgentLimit(t, "a third session", err, LimitOpenSessions)
		wantError(t, "the end", old.end(t.Context(), token, second.ID), nil)
		_, err = s.CreateSession(t.Context(), w.key, n)
		wantAgentLimit(t, "after an end by the version before", err, LimitOpenSessions)
		clock(2 * time.Minute) // such a session counts until it expires
		must(s.CreateSession(t.Context(), w.key, n))(t)
	})
}

// What the version before serves of a suspended agent, and of a session with a limit per action, changes nothing for this one.
func TestTheVersionBeforeLeavesRestrictionsAsTheyAre(t *testing.T) {
	t.Parallel()
	onEachRedis(t, Config{}, func(t *testing.T, s *Store) {
		w, old := newTenant(t, s, NewSession{MaxActions: 100, MaxValue: 1000, MaxPerAction: new(money.MicroUSD(10))}), versionBeside(t, s)
		token, now := w.exchange(t, s).AccessToken, present{s}
		both := func(what string, value money.MicroUSD, refused func(error) bool) {
			t.Helper()
			must(old.charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: value}))(t)
			id := must(old.begin(t.Context(), token, NewTransaction{Session: w.session.ID, Value: value, Lifetime: time.Hour, ActionType: "pay", PreState: "{}"}))(t)
			_, err := now.charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: value})
			if !refused(err) {
				t.Errorf("%s: %v", what, err)
			}
			wantError(t, what+", a commit", old.commit(t.Context(), token, w.session.ID, id, value), nil)
			_, err = now.charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: value})
			if !refused(err) {
				t.Errorf("%s, after a commit by the version before: %v", what, err)
			}
		}
		both("above the limit per action", 11, isLimit)
		must(s.SuspendAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		both("while the agent is suspended", 5, isSuspended)
		must(s.ResumeAgent(t.Context(), w.key, w.agent.ID, ""))(t)
		w.wantBooks(t, s, w.session.ID, 4, 2*11+2*5, Delegated{})
		must(now.charge(t.Context(), token, w.session.ID, Charge{Count: 1, Value: 10}))(t)
	})
}
