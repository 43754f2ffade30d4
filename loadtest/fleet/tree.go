package fleet

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"remit/client"
	"remit/money"
)

const (
	treeDepth    = 4  // sessions from the root to the deepest
	treeSessions = 40 // that live at once in a tree
	partOfParent = 4  // a child asks for this part of its parent's limits
	rootsLast    = 8  // one in so many ends of a root is made
)

// tree is a root session under the organization's budget, with its descendants. It is safe for concurrent use.
type tree struct {
	slot int // of the fleet

	mu    sync.Mutex
	nodes []*session // the root first; also the ended ones
}

// node is the place of a session in a tree. The tree guards it and the session's limits.
type node struct {
	tree       *tree
	parent     *session // nil for the root
	depth      int
	children   []*session
	ending     bool // an end of it or of a session above was sent
	suspension suspension
}

func (t *tree) root() *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nodes[0]
}

// live returns the session and its descendants, those left out for which an end was sent.
func (n *session) live() (live []*session) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.eachBelow(func(m *session) {
		if !m.ending {
			live = append(live, m)
		}
	})
	return live
}

// add adds a session that was created. Its parent may have been ended meanwhile, and then it is too.
func (t *tree) add(n *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = append(t.nodes, n)
	if n.parent != nil {
		n.parent.children = append(n.parent.children, n)
		n.ending = n.parent.ending
	}
}

// willEnd notes that an end of the session is about to be sent.
func (n *session) willEnd() {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.eachBelow(func(m *session) { m.ending = true })
}

// eachBelow calls do for the session and its descendants.
func (n *session) eachBelow(do func(*session)) {
	do(n)
	for _, child := range n.children {
		child.eachBelow(do)
	}
}

// raise notes that the limits may become so much more.
func (n *session) raise(by charge) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.limits.actions, n.limits.value = n.limits.actions+by.count, n.limits.value+by.value
}

// mayHave returns the limits that the session may have.
func (n *session) mayHave() limits {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	return n.limits
}

// judgeInTree completes a fact. The session's usage may include that of descendants that have closed, and an end of it may have rolled
// back what was held.
func (n *session) judgeInTree(f fact, known sent) fact {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	f.inTree, f.limits, f.ending, f.barring = true, n.limits, n.ending, n.barredSince(known.suspensions)
	f.before.held = 0
	n.eachBelow(func(m *session) { f.possible = f.possible.plus(m.ledger.possible()) })
	return f
}

// request is a request about a tree.
type request struct {
	method, path, body string
	agent              *agent // whose token authorizes it; nil: the API key does
	once               bool   // it is sent once and without an idempotency key
}

// asks sends a request about a tree until it is answered, unless it is sent once. Creations and top-ups carry an idempotency key, because
// the totals count all sessions.
func (f *fleet) asks(ctx context.Context, op operation, due time.Time, r request) *recorder {
	if r.once {
		return f.call(ctx, op, due, f.sends(r, ""))
	}
	key := ""
	if r.method == http.MethodPost || r.method == http.MethodPatch {
		key = fmt.Sprintf("tree-%d", f.treeKeys.Add(1))
	}
	return f.persist(ctx, op, due, f.sends(r, key))
}

// sends returns the call that sends a request, with an idempotency key if it is not "".
func (f *fleet) sends(r request, key string) func(context.Context) error {
	return func(ctx context.Context) error {
		headers := map[string]string{"X-API-Key": f.apiKey, "Idempotency-Key": key}
		if r.agent != nil {
			access, err := r.agent.sdk.Token(ctx)
			if err != nil {
				return err
			}
			headers["X-API-Key"], headers["Authorization"] = "", bearer+access
		}
		answer, err := f.wire.send(ctx, r.method, r.path, r.body, headers)
		if err == nil && answer.StatusCode >= http.StatusBadRequest {
			return &client.Problem{Status: answer.StatusCode}
		}
		return err
	}
}

// setBudget sets the organization's budget, to what the first roots need, so that it refuses some of what follows.
func (f *fleet) setBudget(ctx context.Context) error {
	var sum money.MicroUSD
	for slot := range f.trees {
		sum += rootLimits(slot, f.cfg).value
	}
	return f.raiseBudget(ctx, sum)
}

// raiseBudget raises the organization's budget.
func (f *fleet) raiseBudget(ctx context.Context, by money.MicroUSD) error {
	f.budgetMu.Lock()
	defer f.budgetMu.Unlock()
	f.budget += by
	put := request{method: http.MethodPut, path: budgetPath, body: fmt.Sprintf(`{"max_value_usd":%s,"period":"none"}`, f.budget)}
	return f.asks(ctx, opBudget, time.Now(), put).err
}

// budgetNow is the budget as it was set last.
func (f *fleet) budgetNow() money.MicroUSD {
	f.budgetMu.Lock()
	defer f.budgetMu.Unlock()
	return f.budget
}

// rootLimits returns the limits of the root in a slot. Twice those of all roots fit into a budget.
func rootLimits(slot int, cfg config) limits {
	may := nthLimits(slot, cfg)
	may.value = min(may.value, maxSessionValue/2/money.MicroUSD(cfg.fleetSessions()))
	return may
}

// plantFirst plants the first tree of a slot.
func (f *fleet) plantFirst(ctx context.Context, slot int) error {
	return f.plant(ctx, slot, 1, time.Now()).err
}

// plant creates the root of a new tree in a slot, with a part of the slot's value. If the budget is exhausted, the slot stays empty.
func (f *fleet) plant(ctx context.Context, slot, part int, due time.Time) *recorder {
	a, may := f.agents[slot%len(f.agents)], rootLimits(slot, f.cfg)
	may.value /= money.MicroUSD(part)
	t := f.asks(ctx, opSession, due, f.rootOf(a, may))
	f.audit.add(checkPlanted(a.sdk.ID(), may.value, t.reply()))
	if f.cfg.breaking && readProblem(t.reply()).Code == codeBudgetExhausted {
		_ = f.raiseBudget(ctx, may.value) // what is not set stays used up, and the next one tries again
	}
	if t.err != nil {
		return t
	}
	planted := &tree{slot: slot}
	planted.add(&session{sdk: a.sdk.Session(decoded[endAnswer](t.reply().body).ID), agent: a, limits: may, node: &node{tree: planted, depth: 1}})
	f.grove.mu.Lock()
	defer f.grove.mu.Unlock()
	f.trees[slot] = planted
	f.grove.all = append(f.grove.all, planted)
	return t
}

// rootOf is the request for a root session of the agent.
func (f *fleet) rootOf(a *agent, may limits) request {
	return request{method: http.MethodPost, path: sessionsPath, body: fmt.Sprintf(`{"agent_id":%q,"max_actions":%d,"max_value_usd":%s,"expires_in_seconds":%d}`,
		a.sdk.ID(), may.actions, may.value, int64(sessionLifetime(f.cfg).Seconds()))}
}

// grove is all trees of a run, also the ended ones.
type grove struct {
	mu  sync.Mutex
	all []*tree
}

// inTree performs an action on a session of a slot's tree. An empty slot gets a new tree.
func (f *fleet) inTree(ctx context.Context, a action, due time.Time) *recorder {
	f.grove.mu.Lock()
	t := f.trees[a.session]
	f.grove.mu.Unlock()
	live := t.root().live()
	if len(live) == 0 {
		return f.plant(ctx, a.session, 1+a.draw%4, due)
	}
	n := live[a.draw%len(live)]
	switch {
	case a.task == grows && n.depth < treeDepth && len(live) < treeSessions:
		return f.grow(ctx, n, a, due)
	case a.task == raises:
		return f.raise(ctx, n, a, due)
	case a.task == prunes && (n.parent != nil || a.draw%rootsLast == 0):
		return f.prune(ctx, n, f.sendsOnce(a), due)
	case a.task == suspends:
		return f.suspendInTree(ctx, n, a, due)
	case a.task == looks:
		return f.look(ctx, live[0], due)
	case a.task == transacts:
		return f.transact(ctx, n, a, due)
	}
	return f.charge(ctx, n, a, due)
}

// grow creates a child of a session, for an agent drawn for it.
func (f *fleet) grow(ctx context.Context, parent *session, a action, due time.Time) *recorder {
	owner, have, known := f.agents[a.draw%len(f.agents)], parent.mayHave(), parent.send(effect{})
	may := limits{max(have.actions/partOfParent, 1), have.value / partOfParent}
	r := request{method: http.MethodPost, path: sessionsPath, once: f.sendsOnce(a), body: fmt.Sprintf(
		`{"agent_id":%q,"parent_session_id":%q,"max_actions":%d,"max_value_usd":%s}`, owner.sdk.ID(), parent.sdk.ID(), may.actions, may.value)}
	if f.cfg.breaking && a.draw>>24%2 == 0 {
		r.agent = parent.agent
	}
	t := f.asks(ctx, opChild, due, r)
	if t.err == nil {
		place := &node{tree: parent.tree, parent: parent, depth: parent.depth + 1}
		parent.tree.add(&session{sdk: owner.sdk.Session(decoded[endAnswer](t.reply().body).ID), agent: owner, limits: may, node: place})
	}
	if f.cfg.breaking && t.repeats && readProblem(t.reply()).Code == codeNotActive {
		return t // the first attempt was broken off, and its part has come back since
	}
	known.requested.charge = charge{may.actions, may.value}
	f.audit.add(checkChild(parent.judge(known, t.reply())))
	return t
}

// raise tops up a session by what an action needs.
func (f *fleet) raise(ctx context.Context, n *session, a action, due time.Time) *recorder {
	by := a.requested
	by.value++ // never nothing
	n.raise(by)
	known := n.send(effect{})
	t := f.asks(ctx, opTopUp, due, request{method: http.MethodPatch, path: sessionsPath + "/" + n.sdk.ID(), once: f.sendsOnce(a),
		body: fmt.Sprintf(`{"add_actions":%d,"add_value_usd":%s}`, by.count, by.value)})
	known.requested.charge = by
	f.audit.add(checkPart(n.judge(known, t.reply())))
	if t.reply().outcome() == refused {
		n.raise(charge{-by.count, -by.value})
	}
	return t
}

// prune ends a session with its descendants. If it is a root, the slot gets a new tree with its next action.
func (f *fleet) prune(ctx context.Context, n *session, once bool, due time.Time) *recorder {
	n.willEnd()
	if once {
		return f.asks(ctx, opEnd, due, endOf(n.sdk.ID(), once))
	}
	t := f.persist(ctx, opEnd, due, n.sdk.End)
	f.audit.add(checkEnd(sessionFact{session: n.sdk.ID(), end: t.reply()}))
	return t
}

// look reads a tree and the budget, and checks every limit in them.
func (f *fleet) look(ctx context.Context, root *session, due time.Time) *recorder {
	f.audit.add(root.tree.checkSpent())
	t := f.asks(ctx, opTree, due, treeOf(root))
	f.audit.add(checkTreeRead(root.sdk.ID(), t.reply()))
	least := f.budgetNow()
	b := f.asks(ctx, opBudget, time.Now(), readsBudget)
	f.audit.add(checkBudgetRead(least, f.budgetNow(), b.reply()))
	return t
}

var readsBudget = request{method: http.MethodGet, path: budgetPath}

func treeOf(root *session) request {
	return request{method: http.MethodGet, path: sessionsPath + "/" + root.sdk.ID() + "/tree"}
}

func endOf(session string, once bool) request {
	return request{method: http.MethodPost, path: sessionsPath + "/" + session + "/end", once: once}
}
