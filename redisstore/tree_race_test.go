package redisstore

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/suite"
	"remit/money"
)

// racedTree is a tree in which many change everything at once by two instances.
type racedTree struct {
	instances [2]*Store
	w         tenant
	agents    []Agent

	lock     sync.Mutex
	sessions []uuid.UUID
	charged  map[uuid.UUID]Delegated // what was acknowledged
	above    map[uuid.UUID]uuid.UUID
}

func (r *racedTree) pick(random *rand.Rand) uuid.UUID {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.sessions[random.IntN(len(r.sessions))]
}

// total is what was charged in and below a session.
func (r *racedTree) total(session uuid.UUID) Delegated {
	sum := r.charged[session]
	for child, parent := range r.above {
		if parent == session {
			of := r.total(child)
			sum.Actions, sum.Value = sum.Actions+of.Actions, sum.Value+of.Value
		}
	}
	return sum
}

func (r *racedTree) act(t *testing.T, random *rand.Rand, most int) error {
	s, id := r.instances[random.IntN(2)], r.pick(random)
	r.lock.Lock()
	room := len(r.sessions) < most
	r.lock.Unlock()
	switch dice := random.IntN(100); {
	case dice < 55:
		c := Charge{Count: 1, Value: money.MicroUSD(random.Int64N(5000))}
		_, err := s.Charge(t.Context(), r.w.byKey(), id, c)
		if err == nil {
			r.lock.Lock()
			sum := r.charged[id]
			r.charged[id] = Delegated{sum.Actions + 1, sum.Value + c.Value}
			r.lock.Unlock()
		}
		return expected(err)
	case dice < 85 && room:
		child, err := s.CreateChildSession(t.Context(), r.w.byKey(), NewSession{
			Agent: r.agents[random.IntN(len(r.agents))].ID, Parent: id, MaxActions: 1 + random.Int64N(300),
			MaxValue: money.MicroUSD(random.Int64N(1_000_000)), Lifetime: time.Hour, WithinParent: true})
		if err == nil {
			r.lock.Lock()
			r.sessions, r.above[child.ID] = append(r.sessions, child.ID), id
			r.lock.Unlock()
		}
		return orGivenUp(err)
	case dice < 93:
		_, err := s.ChangeLimits(t.Context(), r.w.key, id, NewLimits{AddValue: new(money.MicroUSD(1 + random.Int64N(100_000)))})
		return orGivenUp(err)
	case r.isRoot(id):
		return nil
	default:
		_, err := s.EndSession(t.Context(), r.w.byKey(), id)
		return expected(err)
	}
}

// orGivenUp is expected for what others may overtake: the end of a session above a creation, or other top-ups.
func orGivenUp(err error) error {
	if errors.Is(err, errGivenUp) || errors.Is(err, errStale) {
		return nil
	}
	return expected(err)
}

func (r *racedTree) isRoot(id uuid.UUID) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return id == r.sessions[0]
}

func TestATreeIsExactWhileManyChangeItByTwoInstances(t *testing.T) {
	t.Parallel()
	workers, rounds, most := 16, 20, 40
	if suite.Long {
		workers, rounds, most = 64, 100, 200
	}
	onEachRedisAndCluster(t, Config{}, func(t *testing.T, s *Store) {
		w := newTenant(t, s, NewSession{MaxActions: 1_000_000, MaxValue: 10_000_000})
		other := s.config
		second := must(Open(other))(t)
		t.Cleanup(func() { _ = second.Close() })
		r := &racedTree{instances: [2]*Store{s, second}, w: w, agents: newAgents(t, s, w.key, 8), sessions: []uuid.UUID{w.session.ID},
			charged: map[uuid.UUID]Delegated{}, above: map[uuid.UUID]uuid.UUID{}}
		var group sync.WaitGroup
		for worker := range workers {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 51))
				for range rounds {
					if err := r.act(t, random, most); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		must(s.EndSession(t.Context(), w.byKey(), w.session.ID))(t)
		for _, id := range slices.Backward(r.sessions) { // on a slow machine the end may have had no time for it
			agent := must(s.agentOf(t.Context(), flow{Owner: w.key.Organization}, id))(t)
			must(s.settleOver(t.Context(), w.key.Organization, place{id, agent}))(t)
		}
		for _, id := range r.sessions {
			is, total := must(s.Session(t.Context(), w.byKey(), id))(t), r.total(id)
			if is.Status == Active || is.ActionCount != total.Actions || is.ValueUsed != total.Value || is.delegated() != (Delegated{}) {
				t.Errorf("a session is %s with %d and %d used and %+v delegated; %+v was charged", is.Status, is.ActionCount, is.ValueUsed,
					is.delegated(), total)
			}
		}
	})
}
