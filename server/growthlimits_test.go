package server_test

import (
	"slices"
	"time"

	"remit/money"
)

// The steps and checks of the search of growthsearch_test.go that are about limits and expiry.

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

// changeLimits changes the limits of a session, which no token may.
func (g *growth) changeLimits() {
	s := recent(g, g.sessions)
	path := "/v1/sessions/" + s.id
	as, byToken := asKey(g.key), g.random.IntN(2) == 0
	if byToken {
		as = g.as(recent(g, g.tokens), "PATCH", path)
	}
	change := g.withLimits(fields{"thresholds": nil})
	if r := g.patch(path, change, as); r.status == 200 && (byToken || s.over()) {
		g.t.Errorf("by a token %t, the limits of %s are changed, over %t: %v", byToken, s.id, s.over(), change)
	} else if r.status == 200 {
		g.done["change"]++
	}
}

// searchedSession is what of a session may not grow on the way down.
type searchedSession struct {
	Status       string            `json:"status"`
	MaxActions   int64             `json:"max_actions"`
	MaxValue     money.MicroUSD    `json:"max_value_usd"`
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

// checkTree checks each child in a tree. What the sessions count, the model of redisstore checks.
func (g *growth) checkTree(is searchedSession) {
	for _, child := range is.Children {
		g.checkLimits(is, child)
		g.checkTree(child)
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
