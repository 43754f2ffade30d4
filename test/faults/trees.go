package faults

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"remit/money"
)

const (
	// comesBack is how long after the first request that needs it a part may be set aside without a session.
	comesBack = time.Minute
	// growersOfATree work on one tree at once.
	growersOfATree = 2
	treeAgents     = 5

	rootActions = 2000
	rootValue   = 20 * money.USD
	maxLevels   = 4 // of a tree
)

// Trees are workers that grow trees of sessions in an organization of their own, under its budget. They keep a history of their own,
// because checkTrees judges it.
type Trees struct {
	s       *Scenario
	history *History
	fleet   *Fleet
	apiKey  string // the organization's API key
	agents  []*Agent

	mu     sync.Mutex
	budget money.MicroUSD
	all    []*tree
	broken []Violation // found on the way
}

// tree is a root session and its descendants, those of unknown creation left out.
type tree struct {
	mu    sync.Mutex
	nodes []*grown // the root first
	over  bool     // its root was ended
}

// root returns the root session. Others may add sessions meanwhile.
func (t *tree) root() *grown {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nodes[0]
}

// grown is a session of a tree as callers know it.
type grown struct {
	id     string
	agent  *Agent
	parent *grown // nil for the root
	depth  int
	own    ownUsage // guarded by the tree
}

// StartTrees starts workers on so many trees at once, each followed by another.
func (s *Scenario) StartTrees(trees int) *Trees {
	s.t.Helper()
	w := &Trees{s: s, history: NewHistory(), budget: money.MicroUSD(trees) * rootValue}
	caller := NewCaller(w.history)
	f := &Fixture{}
	do := func(r Request) []byte {
		s.t.Helper()
		call, body := caller.Do(s.Instances[0].URL, r)
		if call.Outcome != OK {
			s.t.Fatalf("%s %s: %d %s %s", r.Method, r.Path, call.Status, call.Err, body)
		}
		return body
	}
	var organization struct {
		APIKey string `json:"api_key"`
	}
	_ = json.Unmarshal(do(Request{Method: http.MethodPost, Path: "/v1/organizations", Body: object{"name": "trees"}}), &organization)
	w.apiKey, f.APIKey = organization.APIKey, organization.APIKey
	for range treeAgents {
		made := created(do(Request{Method: http.MethodPost, Path: "/v1/agents", APIKey: w.apiKey,
			Body: object{"name": "agent", "scopes": []string{"sessions:delegate", "transactions:rollback"}}}))
		a := &Agent{ID: made.ID, Secret: made.Secret}
		a.Access = pairIn(do(exchange(a.ID, a.Secret))).Access
		w.agents = append(w.agents, a)
	}
	do(w.setBudget(w.budget))
	f.Agents = w.agents
	var urls []string
	for _, i := range s.Instances {
		urls = append(urls, i.URL)
	}
	w.fleet = newFleet(f, caller, urls, rand.Uint64())
	for n := range trees {
		w.fleet.workers.Go(func() { w.growTrees(n) })
	}
	s.t.Cleanup(w.fleet.Stop)
	return w
}

func (w *Trees) setBudget(to money.MicroUSD) Request {
	return Request{Call: Call{Kind: TopUp}, Method: http.MethodPut, Path: "/v1/budget", APIKey: w.apiKey,
		Body: object{"max_value_usd": to, "period": "none"}}
}

// growTrees grows one tree after the other. The last one stays, when the fleet stops.
func (w *Trees) growTrees(n int) {
	gardener := &grower{worker: w.fleet.newWorker(n * (growersOfATree + 1)), trees: w}
	for !w.fleet.stopped() {
		t := gardener.plant()
		if t == nil {
			continue
		}
		var group sync.WaitGroup
		for i := range growersOfATree {
			g := &grower{worker: w.fleet.newWorker(n*(growersOfATree+1) + 1 + i), trees: w, tree: t}
			g.keys = len(w.trees()) << 20 // so that no key repeats one for an earlier tree
			group.Go(g.grow)
		}
		group.Wait()
		if !w.fleet.stopped() {
			gardener.tree = t
			gardener.fell()
		}
	}
}

func (w *Trees) trees() []*tree {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *Trees) report(v ...Violation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, v...)
}

// AwaitCalls returns when growers have had so many more calls acknowledged.
func (w *Trees) AwaitCalls(more int) {
	w.s.t.Helper()
	acknowledged := func() int { return w.history.Count(func(c Call) bool { return c.Outcome == OK }) }
	want := acknowledged() + more
	for deadline := time.Now().Add(workPatience); acknowledged() < want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.s.t.Fatalf("no %d more calls of growers in %v: %s", more, workPatience, Summary(w.history.Calls()))
		}
	}
}

// BrokenOff returns how many calls of a kind got no answer.
func (w *Trees) BrokenOff(kind Kind) int {
	return w.history.Count(func(c Call) bool { return c.Kind == kind && c.Outcome == Unknown })
}

// finisher stops the growers, and returns what uses the last instance in their place.
func (w *Trees) finisher() *finisher {
	w.fleet.Stop()
	at := w.s.Instances[len(w.s.Instances)-1].URL
	return &finisher{Trees: w, reader: reader{caller: w.fleet.caller, instance: at, key: w.apiKey}}
}

// NeedParts stops the growers, ends all below the roots that live, and asks each of these for all that is free then. A part without a
// session takes half a minute to come back.
func (w *Trees) NeedParts() {
	w.s.t.Helper()
	w.finisher().eachTree((*finisher).needAll)
}

// Finish stops the growers, ends all trees, asks the budget for all that is free then, and checks everything.
func (w *Trees) Finish() {
	w.s.t.Helper()
	f := w.finisher()
	f.eachTree((*finisher).fell)
	f.needBudget()
	nodes, budget := f.closed()
	if f.reader.err != nil {
		w.s.t.Fatal(f.reader.err)
	}
	w.report(checkTrees(nodes, budget)...)
	w.report(checkTreeAnswers(w.history.Calls())...)
	for _, v := range w.broken {
		w.s.t.Error(v)
	}
	w.fleet.caller.Close()
	w.s.t.Logf("trees: %d with %d sessions, %v of %v USD used; broken off: %d creations, %d top-ups, %d ends; %s", len(w.trees()), len(nodes),
		budget.Used, budget.Max, w.BrokenOff(Create), w.BrokenOff(TopUp), w.BrokenOff(End), Summary(w.history.Calls()))
}

// treeRefusals are the codes with which growers, who race each other, may be refused.
var treeRefusals = []string{"session_limit_reached", "session_not_active", "budget_exhausted", "transaction_not_pending",
	"transaction_not_reversible", "unavailable"}

func checkTreeAnswers(calls []Call) []Violation {
	var out []Violation
	for _, c := range calls {
		if c.Outcome == Refused && c.Status != 0 && !slices.Contains(treeRefusals, c.Code) || c.Status == http.StatusInternalServerError {
			out = append(out, violationOf(RuleAnswer, string(c.Kind)+" "+c.Subject, "%d %s %s", c.Status, c.Code, c.Answer))
		}
	}
	return out
}
