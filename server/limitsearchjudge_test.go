package server_test

import (
	"slices"
	"time"

	"remit/money"
)

// searchedSession is what of a session may not grow on the way down.
type searchedSession struct {
	ID           string            `json:"id"`
	Agent        string            `json:"agent_id"`
	Status       string            `json:"status"`
	MaxActions   int64             `json:"max_actions"`
	Actions      int64             `json:"action_count"`
	Delegated    int64             `json:"actions_delegated"`
	MaxValue     money.MicroUSD    `json:"max_value_usd"`
	Used         money.MicroUSD    `json:"value_used_usd"`
	Held         money.MicroUSD    `json:"value_held_usd"`
	Given        money.MicroUSD    `json:"value_delegated_usd"`
	MaxLease     int64             `json:"max_lease_seconds"`
	MaxPerAction *money.MicroUSD   `json:"max_value_usd_per_action"`
	Scopes       []string          `json:"scopes"`
	Expires      time.Time         `json:"expires_at"`
	Suspended    string            `json:"suspended_at"`
	Enforcement  string            `json:"enforcement"`
	Children     []searchedSession `json:"children"`
}

func (g *limitSearch) isDead(by searcher) bool {
	if slices.ContainsFunc(by.agents, func(id string) bool { return g.revoked[id] }) {
		return true
	}
	return by.session != "" && g.read(by.session).Status != "active"
}

// judge fails the test where a dead caller, or one that acts where it may not, was obeyed.
func (g *limitSearch) judge(by searcher, on searchedSession, what string, r *response) *response {
	if r.status >= 300 {
		return r
	}
	g.done[what+" by "+by.kind]++
	switch {
	case by.kind == g.key.kind:
	case slices.ContainsFunc(by.agents, func(id string) bool { return g.revoked[id] }):
		g.t.Errorf("%s by a revoked %s: %d", what, by.kind, r.status)
	case by.session != "" && by.session != on.ID:
		g.t.Errorf("%s in %s by a token for %s", what, on.ID, by.session)
	case by.agents[0] != on.Agent:
		g.t.Errorf("%s in the session of another agent", what)
	}
	if on.Status != "active" && what != "end" {
		g.t.Errorf("%s in a session that is %s", what, on.Status)
	}
	if on.Suspended != "" && (what == "create" || what == "lease" || what == "charge") {
		g.t.Errorf("%s in a suspended session", what)
	}
	return r
}

// check fails the test where a child may do more than its parent. A change of the parent does not reach one that is over.
func (g *limitSearch) check(above, child searchedSession) {
	if child.Status != "active" {
		return
	}
	var problems []string
	fault := func(is bool, what string) {
		if is {
			problems = append(problems, what)
		}
	}
	fault(child.MaxLease > above.MaxLease, "leases longer")
	fault(above.MaxPerAction != nil && (child.MaxPerAction == nil || *child.MaxPerAction > *above.MaxPerAction), "spends more at once")
	fault(child.Expires.After(above.Expires), "lasts longer")
	fault(child.Enforcement == "observe" && above.Enforcement != "observe", "observes")
	fault(above.Status == "completed" || above.Status == "expired", "goes on")
	fault(above.Suspended != "" && child.Suspended == "", "is not suspended")
	fault(slices.ContainsFunc(child.Scopes, func(scope string) bool { return !slices.Contains(above.Scopes, scope) }), "has more scopes")
	if above.Children, child.Children = nil, nil; len(problems) > 0 {
		g.t.Errorf("a child %v:\n%+v\n%+v", problems, above, child)
	}
}

func (g *limitSearch) checkTree(is searchedSession) {
	if is.Actions+is.Delegated > is.MaxActions || is.Used+is.Held+is.Given > is.MaxValue {
		g.t.Errorf("a session has used, held and delegated more than its limits: %+v", is)
	}
	var actions int64
	var value money.MicroUSD
	for _, child := range is.Children {
		g.check(is, child)
		g.checkTree(child)
		if child.Status == "active" {
			actions, value = actions+child.MaxActions, value+child.MaxValue
		}
	}
	if actions > is.Delegated || value > is.Given {
		g.t.Errorf("%s has delegated %d and %s, its children have %d and %s", is.ID, is.Delegated, is.Given, actions, value)
	}
}

// checkTrees checks the trees of the last roots: the others are over.
func (g *limitSearch) checkTrees() {
	for _, root := range g.roots[max(len(g.roots)-3, 0):] {
		var tree searchedSession
		g.get("/v1/sessions/"+root+"/tree", g.key.as).is(200).decode(&tree)
		g.checkTree(tree)
	}
}
