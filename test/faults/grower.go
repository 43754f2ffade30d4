package faults

import (
	"encoding/json"
	"net/http"

	"remit/money"
)

// stepsOfATree is how many steps each grower makes on a tree.
const stepsOfATree = 40

// grower is a worker on a tree.
type grower struct {
	*worker
	trees *Trees
	tree  *tree
}

// growth are what growers do, with their relative frequency.
var growth = []struct {
	weight int
	do     func(*grower, *grown)
}{
	{6, (*grower).create},
	{2, (*grower).createOnce},
	{8, (*grower).charge},
	{4, (*grower).transact},
	{4, (*grower).topUp},
	{1, (*grower).topUpOnce},
	{3, (*grower).end},
	{1, (*grower).endOnce},
	{1, (*grower).look},
}

func (g *grower) grow() {
	sum := 0
	for _, step := range growth {
		sum += step.weight
	}
	for n := 0; n < stepsOfATree && !g.stopped(); n++ {
		drawn := g.random.IntN(sum)
		for _, step := range growth {
			if drawn -= step.weight; drawn < 0 {
				step.do(g, g.drawNode())
				break
			}
		}
		g.rest(workerPause)
	}
}

// drawNode draws a session of the tree, mostly one of the latest.
func (g *grower) drawNode() *grown {
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	recent := max(len(g.tree.nodes)-8, 0)
	if g.random.IntN(4) == 0 {
		recent = 0
	}
	return g.tree.nodes[recent+g.random.IntN(len(g.tree.nodes)-recent)]
}

// note notes an effect on a session, if the call had one or may have had one.
func (g *grower) note(n *grown, outcome Outcome, actions int64, used, overage money.MicroUSD) {
	if outcome == Refused {
		return
	}
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	certain := outcome == OK
	n.own.actions.add(actions, certain)
	n.own.used.add(int64(used), certain)
	n.own.overage.add(int64(overage), certain)
}

func (g *grower) byKey(kind Kind, method, path string, body any) Request {
	return Request{Call: Call{Kind: kind}, Method: method, Path: path, Body: body, APIKey: g.trees.apiKey}
}

// plant creates a root session under the budget, which it raises when it is used up. It returns nil without one.
func (g *grower) plant() *tree {
	agent := g.trees.agents[g.random.IntN(treeAgents)]
	r := g.keyed(g.byKey(Create, http.MethodPost, "/v1/sessions", object{"agent_id": agent.ID, "max_actions": rootActions,
		"max_value_usd": rootValue, "expires_in_seconds": 86400}))
	call, body := g.callUntilAnswered(r)
	if call.Code == "budget_exhausted" {
		g.trees.mu.Lock()
		defer g.trees.mu.Unlock()
		g.trees.budget += rootValue
		g.callUntilAnswered(g.trees.setBudget(g.trees.budget))
		return nil
	}
	s := made(body)
	if call.Outcome != OK || s.ID == "" {
		return nil
	}
	t := &tree{nodes: []*grown{{id: s.ID, agent: agent, depth: 1}}}
	g.trees.mu.Lock()
	defer g.trees.mu.Unlock()
	g.trees.all = append(g.trees.all, t)
	return t
}

// fell ends a tree by its root.
func (g *grower) fell() {
	root := g.tree.root()
	c, _ := g.callUntilAnswered(g.byKey(End, http.MethodPost, "/v1/sessions/"+root.id+"/end", nil))
	g.tree.over = c.Outcome == OK || c.Code == "session_not_active"
}

// drawChild returns a request for a child of the session, by API key or by the agent of the session.
func (g *grower) drawChild(parent *grown) (Request, *Agent) {
	agent := g.trees.agents[g.random.IntN(treeAgents)]
	r := g.byKey(Create, http.MethodPost, "/v1/sessions", object{"agent_id": agent.ID, "parent_session_id": parent.id,
		"max_actions": 5 + g.random.IntN(50), "max_value_usd": money.MicroUSD(g.random.Int64N(int64(rootValue) / 4 >> (parent.depth - 1)))})
	if g.random.IntN(2) == 0 {
		r.APIKey, r.Token = "", parent.agent.Access
	}
	return r, agent
}

func (g *grower) create(parent *grown) {
	if parent.depth == maxLevels {
		return
	}
	r, agent := g.drawChild(parent)
	c, body := g.callUntilAnswered(g.keyed(r))
	if c.Outcome == OK {
		g.add(parent, agent, made(body))
	}
}

// createOnce creates a child without a key. If that is not answered, its part is set aside for no session.
func (g *grower) createOnce(parent *grown) {
	if parent.depth == maxLevels {
		return
	}
	r, agent := g.drawChild(parent)
	c, body := g.call(r)
	if c.Outcome == OK {
		g.add(parent, agent, made(body))
	}
}

func (g *grower) add(parent *grown, agent *Agent, s TreeSession) {
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	g.tree.nodes = append(g.tree.nodes, &grown{id: s.ID, agent: agent, parent: parent, depth: parent.depth + 1})
}

func (g *grower) charge(n *grown) {
	actions, value := 1+g.random.Int64N(2), money.MicroUSD(g.random.Int64N(int64(money.USD/2)))
	r := g.keyed(ChargeSession(n.agent, n.id, actions, value))
	c, body := g.callUntilAnswered(r)
	g.note(n, c.Outcome, actions, value, 0)
	if c.Outcome == OK {
		g.trees.report(checkTree(made(body))...)
	}
}

// transact begins a transaction, and commits it for less or more than it holds, rolls it back, or leaves it to the session's end.
func (g *grower) transact(n *grown) {
	hold := money.MicroUSD(g.random.Int64N(int64(money.USD / 2)))
	begin := g.keyed(Request{Call: Call{Kind: Begin}, Method: http.MethodPost, Path: "/v1/transactions", Token: n.agent.Access, Body: object{
		"session_id": n.id, "action_type": "call", "pre_state": object{"n": g.keys}, "value_usd": hold, "reversible": true, "expires_in_seconds": 86400}})
	c, body := g.callUntilAnswered(begin)
	g.note(n, c.Outcome, 1, 0, 0)
	id := created(body).ID
	if c.Outcome != OK || id == "" {
		return
	}
	path := "/v1/transactions/" + id
	switch g.random.IntN(4) {
	case 0:
	case 1:
		g.callUntilAnswered(g.keyed(g.byKey(Rollback, http.MethodPost, path+"/rollback", object{})))
	default:
		g.commit(n, path, money.MicroUSD(g.random.Int64N(int64(2*hold)+1)))
	}
}

func (g *grower) commit(n *grown, path string, cost money.MicroUSD) {
	c, body := g.callUntilAnswered(g.keyed(Request{Call: Call{Kind: Commit}, Method: http.MethodPost, Path: path + "/commit",
		Token: n.agent.Access, Body: object{"value_usd": cost}}))
	var did struct {
		Value   money.MicroUSD `json:"value_usd"`
		Overage money.MicroUSD `json:"overage_usd"`
	}
	if c.Outcome != OK {
		g.note(n, c.Outcome, 0, cost, cost) // all of it may be either
		return
	}
	_ = json.Unmarshal(body, &did)
	if did.Value+did.Overage != cost {
		g.trees.report(violationOf(RuleAnswer, path, "committed for %v: %s", cost, body))
	}
	g.note(n, OK, 0, did.Value, did.Overage)
}

func (g *grower) drawTopUp(n *grown) Request {
	return g.byKey(TopUp, http.MethodPatch, "/v1/sessions/"+n.id, object{"add_actions": 1 + g.random.IntN(10),
		"add_value_usd": money.MicroUSD(1 + g.random.Int64N(int64(money.USD)))})
}

func (g *grower) topUp(n *grown) {
	if n.parent != nil || g.random.IntN(4) == 0 {
		g.callUntilAnswered(g.keyed(g.drawTopUp(n)))
	}
}

// topUpOnce tops up without a key. If that is not answered, the part may be larger than the limits.
func (g *grower) topUpOnce(n *grown) { g.call(g.drawTopUp(n)) }

// end ends a session below the root, with all its descendants.
func (g *grower) end(n *grown) {
	if n.parent != nil {
		g.callUntilAnswered(g.byKey(End, http.MethodPost, "/v1/sessions/"+n.id+"/end", nil))
	}
}

// endOnce ends a session below the root. If that is not answered, some of its descendants may live, and no request ends them.
func (g *grower) endOnce(n *grown) {
	if n.parent != nil {
		g.call(g.byKey(End, http.MethodPost, "/v1/sessions/"+n.id+"/end", nil))
	}
}

// look reads the tree and the budget, and checks every limit.
func (g *grower) look(*grown) {
	var s TreeSession
	var b Budget
	if c, body := g.call(g.byKey(Read, http.MethodGet, "/v1/sessions/"+g.tree.root().id+"/tree", nil)); c.Outcome == OK && json.Unmarshal(body, &s) == nil {
		g.trees.report(checkTree(s)...)
	}
	if c, body := g.call(g.byKey(Read, http.MethodGet, "/v1/budget", nil)); c.Outcome == OK && json.Unmarshal(body, &b) == nil {
		g.trees.report(checkBudget(b)...)
	}
}
