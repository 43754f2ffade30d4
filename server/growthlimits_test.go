package server_test

import (
	"slices"
	"time"

	"remit/money"
)

// The steps and checks of the search of growthsearch_test.go that are about limits, leases and expiry.

// withLimits adds some of the settings that may not grow on the way down.
func (g *growth) withLimits(wanted fields) fields {
	wanted = wanted.with(nil)
	for _, one := range []struct {
		name   string
		values []any
	}{
		{"max_lease_seconds", []any{0, 5, 30, 60, 60}}, {"max_value_usd_per_action", []any{1, 2, 5, 5, nil}}, {"expires_in_seconds", []any{500, 3000}},
	} {
		if g.random.IntN(3) == 0 {
			wanted[one.name] = pickOf(g, one.values)
		}
	}
	return wanted
}

// caller returns who asks for something at a path: the API key as often as a token, which is then returned too.
func (g *growth) caller(method, path string) (option, *grownToken) {
	if g.random.IntN(2) == 0 {
		return asKey(g.key), nil
	}
	k := recent(g, g.tokens)
	return g.as(k, method, path), k
}

// mayAct says whether a token, or the API key, may act in a session that is neither over nor suspended.
func (k *grownToken) mayAct(s *grownSession) bool {
	return !s.over() && !s.halted() && (k == nil || k.alive() && slices.Contains(k.audience, issuer) && k.reaches(s))
}

// changeLimits changes the limits of a session, which no token may.
func (g *growth) changeLimits() {
	s := recent(g, g.sessions)
	path := "/v1/sessions/" + s.id
	as, by := g.caller("PATCH", path)
	change := g.withLimits(fields{"thresholds": nil})
	if r := g.patch(path, change, as); r.status == 200 && (by != nil || s.over()) {
		g.t.Errorf("%v changed the limits of %s, over %t: %v", by, s.id, s.over(), change)
	} else if r.status == 200 {
		g.done["change"]++
	}
}

// takeLease takes a lease of a session, and settles it now and then.
func (g *growth) takeLease() {
	s := g.sessionWhere(func(s *grownSession) bool { return true })
	path := "/v1/sessions/" + s.id + "/leases"
	as, by := g.caller("POST", path)
	is := g.searched(s.id)
	r := g.post(path, fields{
		"max_actions": 1, "max_value_usd": g.random.IntN(3), "expires_in_seconds": 1 + g.random.IntN(60), "partial": g.random.IntN(4) > 0,
	}, as)
	if r.status != 201 {
		return
	}
	var lease struct {
		Created time.Time `json:"created_at"`
		Expires time.Time `json:"expires_at"`
	}
	r.decode(&lease)
	if !by.mayAct(s) {
		g.t.Errorf("%v takes a lease of %s", by, s.id)
	}
	if lease.Expires.Sub(lease.Created) > time.Duration(is.MaxLease)*time.Second || lease.Expires.After(is.Expires) {
		g.t.Errorf("a lease from %s to %s of a session with %d s until %s", lease.Created, lease.Expires, is.MaxLease, is.Expires)
	}
	g.done["lease"]++
	if g.random.IntN(2) == 0 {
		g.post("/v1/leases/"+r.text("id")+"/settle", fields{"action_count": 1, "value_used_usd": g.random.IntN(4)}, asKey(g.key))
	}
}

// searchedSession is what of a session may not grow on the way down.
type searchedSession struct {
	ID           string            `json:"id"`
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

func (g *growth) searched(id string) (is searchedSession) {
	g.get("/v1/sessions/"+id, asKey(g.key)).is(200).decode(&is)
	return is
}

// checkTrees checks the trees of the last roots: the others are over.
func (g *growth) checkTrees() {
	roots := slices.DeleteFunc(slices.Clone(g.sessions), func(s *grownSession) bool { return s.parent != nil })
	for _, root := range roots[max(len(roots)-3, 0):] {
		var tree searchedSession
		g.get("/v1/sessions/"+root.id+"/tree", asKey(g.key)).is(200).decode(&tree)
		g.checkTree(tree)
	}
}

func (g *growth) checkTree(is searchedSession) {
	if is.Actions+is.Delegated > is.MaxActions || is.Used+is.Held+is.Given > is.MaxValue {
		g.t.Errorf("a session has used, held and delegated more than its limits: %+v", is)
	}
	var actions int64
	var value money.MicroUSD
	for _, child := range is.Children {
		g.checkLimits(is, child)
		g.checkTree(child)
		if child.Status == "active" {
			actions, value = actions+child.MaxActions, value+child.MaxValue
		}
	}
	if actions > is.Delegated || value > is.Given {
		g.t.Errorf("%s has delegated %d and %s, its children have %d and %s", is.ID, is.Delegated, is.Given, actions, value)
	}
}

// checkLimits fails the test where a child may do more than its parent. A change of the parent does not reach one that is over.
func (g *growth) checkLimits(above, child searchedSession) {
	if child.Status != "active" {
		return
	}
	above.Children, child.Children = nil, nil
	for what, is := range map[string]bool{
		"leases longer":       child.MaxLease > above.MaxLease,
		"spends more at once": above.MaxPerAction != nil && (child.MaxPerAction == nil || *child.MaxPerAction > *above.MaxPerAction),
		"lasts longer":        child.Expires.After(above.Expires),
		"observes":            child.Enforcement == "observe" && above.Enforcement != "observe",
		"goes on":             above.Status == "completed" || above.Status == "expired",
		"is not suspended":    above.Suspended != "" && child.Suspended == "",
		"has more actions":    child.MaxActions > above.MaxActions,
		"has more to spend":   child.MaxValue > above.MaxValue,
	} {
		if is {
			g.t.Errorf("a child %s:\n%+v\n%+v", what, above, child)
		}
	}
}
