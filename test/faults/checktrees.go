package faults

import (
	"slices"

	"remit/money"
)

// TreeSession is a session of a tree as the service reports it.
type TreeSession struct {
	ID     string `json:"id"`
	Agent  string `json:"agent_id"`
	Parent string `json:"parent_session_id"`
	Session
	Overage          money.MicroUSD `json:"value_overage_usd"`
	DelegatedActions int64          `json:"actions_delegated"`
	DelegatedValue   money.MicroUSD `json:"value_delegated_usd"`
	Children         []TreeSession  `json:"children"`
}

// Budget is the budget of an organization as the service reports it.
type Budget struct {
	Max      money.MicroUSD `json:"max_value_usd"`
	Reserved money.MicroUSD `json:"value_reserved_usd"`
	Used     money.MicroUSD `json:"value_used_usd"`
}

// ownUsage is what callers know of one session's own usage, without that of its children.
type ownUsage struct{ actions, used, overage bounds }

// treeNode is a session of a tree that has ended.
type treeNode struct {
	id, parent string // no parent: a root
	own        ownUsage
	stored     TreeSession
	missing    bool // it is not stored
}

// checkTrees checks that each session has used what it spent itself and what its children have used, to the micro-dollar, that the
// budget has used what the roots have, and that nothing is set aside any more. Every session must have ended.
func checkTrees(nodes []treeNode, budget Budget) []Violation {
	below := map[string]TreeSession{} // the sum of the children, by parent; that of the roots has no name
	for _, n := range nodes {
		sum := below[n.parent]
		sum.Actions, sum.Used, sum.Overage = sum.Actions+n.stored.Actions, sum.Used+n.stored.Used, sum.Overage+n.stored.Overage
		below[n.parent] = sum
	}
	out := checkBudget(budget)
	if roots := below[""].Used; budget.Used < roots {
		out = append(out, violationOf(RuleLost, "the budget", "%v USD are used, the root sessions have used %v", budget.Used, roots))
	} else if budget.Used > roots {
		out = append(out, violationOf(RuleSurplus, "the budget", "%v USD are used, the root sessions have used %v", budget.Used, roots))
	}
	if budget.Reserved != 0 {
		out = append(out, violationOf(RulePart, "the budget", "%v USD are reserved, and no session is open", budget.Reserved))
	}
	for _, n := range nodes {
		out = append(out, n.check(below[n.id])...)
	}
	return out
}

// check checks a session whose children have used that much.
func (n treeNode) check(children TreeSession) []Violation {
	if n.missing {
		return checkMissing([]string{n.id})
	}
	s := n.stored
	out := slices.Concat(
		n.own.actions.check(n.id, "actions of its own", s.Actions-children.Actions),
		n.own.used.check(n.id, "micro-USD used by itself", int64(s.Used-children.Used)),
		n.own.overage.check(n.id, "micro-USD of its own beyond the limit", int64(s.Overage-children.Overage)),
	)
	if s.Status == "active" || s.Held != 0 || s.DelegatedActions != 0 || s.DelegatedValue != 0 {
		out = append(out, violationOf(RulePart, "session "+n.id, "it is %s, with %v USD held, %d actions and %v USD delegated",
			s.Status, s.Held, s.DelegatedActions, s.DelegatedValue))
	}
	return append(out, checkTree(s)...)
}

// checkTree checks that no session of a tree exceeds a limit. Each is read by itself, so a parent and a child need not fit together.
func checkTree(s TreeSession) []Violation {
	whole := s.Session
	whole.Actions, whole.Used = s.Actions+s.DelegatedActions, s.Used+s.DelegatedValue
	out := checkLimits("session "+s.ID+" with what is delegated", whole)
	for _, child := range s.Children {
		out = append(out, checkTree(child)...)
	}
	return out
}

func checkBudget(b Budget) []Violation {
	return checkLimits("the budget", Session{Used: b.Used + b.Reserved, MaxValue: b.Max})
}
