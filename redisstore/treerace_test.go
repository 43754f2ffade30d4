package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"remit/money"
	"remit/test/suite"
)

// race is how many change a tree at once, and how much.
type race struct {
	workers, rounds, agents int
	shape                   []int // sessions in each level before they begin
	most                    int   // sessions in all
}

var (
	shortRace = race{workers: 16, rounds: 24, agents: 8, shape: []int{1, 3, 8, 18}, most: 60}
	longRace  = race{workers: 64, rounds: 100, agents: 24, shape: []int{1, 10, 49, 140}, most: 500}
)

const (
	racedLifetime = 2 * time.Hour // of a session: nothing expires but what is to
	racedBudget   = 3000 * money.USD
	racedValue    = 2000 * money.USD // of the root
	racedActions  = 200_000
)

// At no time does what was spent and held in and below a session exceed its limits, no suspension or end that was acknowledged is
// disregarded by the other instance, and when all sessions are closed every one has used what was charged to it and what its children
// have used.
func TestATreeIsExactWhileManyChangeItByTwoInstances(t *testing.T) {
	t.Parallel()
	of := shortRace
	if suite.Long {
		of = longRace
	}
	run := func(t *testing.T, s *Store) {
		r := newRacedTree(t, s, of)
		stop, watched := make(chan struct{}), make(chan int)
		root := r.nodes[0].session
		go func() { watched <- r.watch(root, stop) }()
		r.plant(of)
		r.run(of)
		close(stop)
		reads := <-watched
		r.wantVariety(reads)
		r.close()
		r.checkClosed()
		t.Logf("%d sessions, %d reads of the tree; done %v; refused %v; unanswered %v", len(r.nodes), reads, r.done, r.refused, r.unanswered)
	}
	onRealRedis(t, Config{}, run)
	if !testing.Short() && !suite.Long {
		onCluster(t, Config{}, run)
	}
}

func newRacedTree(t *testing.T, s *Store, of race) *racedTree {
	t.Helper()
	r := &racedTree{t: t, instances: [2]*Store{s, anotherInstance(t, s)}, key: newOrganization(t, s), most: of.most, done: map[string]int{},
		refused: map[string]int{}, unanswered: map[string]int{}}
	for i := range of.agents {
		secret := [32]byte{byte(i + 1)}
		agent := must(s.CreateAgent(t.Context(), r.key, Agent{Name: fmt.Sprint("agent ", i), Scopes: []string{"sessions:delegate"}}, secret, nil))(t)
		r.agents = append(r.agents, &racedAgent{agent.ID, must(s.ExchangeSecret(t.Context(), agent.ID, secret, GrantRequest{}))(t).AccessToken, newRacedGate()})
	}
	must(s.SetBudget(t.Context(), r.key, racedBudget, BudgetForever))(t)
	root := must(s.CreateSession(t.Context(), r.key, NewSession{Agent: r.agents[0].id, MaxActions: racedActions, MaxValue: racedValue,
		Lifetime: racedLifetime, MaxLease: leaseOfRace}))(t)
	r.nodes = []*racedNode{{place: place{root.ID, root.Agent}, agent: r.agents[0], depth: 1, suspension: newRacedGate(),
		limits: cost{racedActions, racedValue}}}
	return r
}

// plant creates the sessions that are there before the race, level by level, while they are watched.
func (r *racedTree) plant(of race) {
	parents := r.nodes
	for _, wanted := range of.shape[1:] {
		first := len(r.nodes)
		for attempt := range 3 { // the first creates all, unless Redis is too slow
			var group sync.WaitGroup
			for i := len(r.nodes) - first; i < wanted; i++ {
				parent, p := parents[i%len(parents)], &racer{racedTree: r, random: rand.New(rand.NewPCG(uint64(attempt), uint64(first+i)))}
				part := int64(2 * (wanted/len(parents) + 1)) // so that half of the parent is left to it
				may := cost{parent.limits.actions / part, parent.limits.value / money.MicroUSD(part)}
				group.Go(func() { p.createPart(parent, may, racedLifetime) })
			}
			group.Wait()
		}
		if parents = r.nodes[first:]; len(parents) != wanted {
			r.t.Fatalf("%d sessions are planted, want %d", len(parents), wanted)
		}
	}
}

func (r *racedTree) run(of race) {
	var group sync.WaitGroup
	for worker := range of.workers {
		group.Go(func() {
			p := &racer{racedTree: r, random: rand.New(rand.NewPCG(uint64(worker), 51))}
			for range of.rounds {
				if r.t.Failed() {
					return
				}
				p.act()
			}
		})
	}
	group.Wait()
}

// wantVariety checks that the race was one.
func (r *racedTree) wantVariety(reads int) {
	r.t.Helper()
	levels := map[int]int{}
	for _, n := range r.nodes {
		levels[n.depth]++
	}
	for _, what := range []string{"charge", "batch", "begin", "commit", "rollback", "lease", "settle", "create", "top-up", "end", "suspend", "resume"} {
		if r.done[what] == 0 {
			r.t.Errorf("no %s was done: %v", what, r.done)
		}
	}
	if all(r.unanswered) > all(r.done)/10 {
		r.t.Errorf("%v were not answered", r.unanswered)
	}
	if len(levels) != racedLevels || r.refused["charge"] == 0 || r.refused["create"] == 0 || reads < 3 {
		r.t.Errorf("%v sessions by level, refused %v, %d reads of the tree", levels, r.refused, reads)
	}
}

func all(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// close ends the tree, and again until all are closed: unsettled leases run out first, and transactions in
// sessions that have expired.
func (r *racedTree) close() {
	r.t.Helper()
	root := r.nodes[0]
	r.willEnd(root)
	eventually(r.t, "all sessions are closed", func() bool {
		for _, n := range r.nodes {
			letItClose(r.t, r.instances[0], n.place)
		}
		_, failed := r.instances[0].EndSession(r.t.Context(), Caller{Key: &r.key}, root.session)
		is, unread := r.instances[1].Session(r.t.Context(), Caller{Key: &r.key}, root.session)
		budget, unknown := r.instances[1].Budget(r.t.Context(), r.key)
		err := errors.Join(failed, unread, unknown)
		if err != nil && !isUnanswered(err) {
			r.t.Fatal(err)
		}
		return err == nil && is.delegated() == Delegated{} && budget.Reserved == 0
	})
}

// checkClosed compares every session with what was charged to it and with its children.
func (r *racedTree) checkClosed() {
	r.t.Helper()
	stored, below, over := map[*racedNode]Session{}, map[*racedNode]cost{}, map[*racedNode]money.MicroUSD{}
	for _, n := range r.nodes {
		is := must(r.instances[0].Session(r.t.Context(), Caller{Key: &r.key}, n.session))(r.t)
		stored[n] = is
		below[n.above], over[n.above] = below[n.above].plus(cost{is.ActionCount, is.ValueUsed}), over[n.above]+is.ValueOverage
	}
	unsure := 0
	for _, n := range r.nodes {
		is := stored[n]
		own, overage := cost{is.ActionCount, is.ValueUsed}.minus(below[n]), is.ValueOverage-over[n]
		if is.Status == Active || is.delegated() != (Delegated{}) || is.ValueHeld != 0 {
			r.t.Errorf("a session is %s, with %s held and %+v delegated", is.Status, is.ValueHeld, is.delegated())
		}
		if !own.within(n.own, n.own.plus(n.unsure)) || overage < n.overage || overage > n.overage+n.unsureOverage {
			r.t.Errorf("a session of level %d has itself used %v with %d over; %v and %d were charged, of %v and %d it is not known whether they were "+
				"given back", n.depth, own, overage, n.own, n.overage, n.unsure, n.unsureOverage)
		}
		if n.unsure != (cost{}) || n.unsureOverage != 0 {
			unsure++
		}
	}
	if used := must(r.instances[0].Budget(r.t.Context(), r.key))(r.t).Used; used != stored[r.nodes[0]].ValueUsed {
		r.t.Errorf("the budget has %d used, the root %d", used, stored[r.nodes[0]].ValueUsed)
	}
	if unsure > len(r.nodes)/4 {
		r.t.Errorf("of %d of %d sessions it is not known exactly what was charged", unsure, len(r.nodes))
	}
}
