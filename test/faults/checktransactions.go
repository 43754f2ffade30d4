package faults

import (
	"maps"
	"slices"
)

// settlement is what callers know about a transaction.
type settlement struct{ begun, committed, rolledBack, unknown bool }

// checkTransactions assumes that the fleet does not roll back a committed transaction on purpose.
func checkTransactions(operations []*operation, stored map[string]string) []Violation {
	settlements := map[string]*settlement{}
	of := func(id string) *settlement {
		if settlements[id] == nil {
			settlements[id] = &settlement{}
		}
		return settlements[id]
	}
	for _, o := range operations {
		switch {
		case o.Kind == Begin && o.Outcome == OK:
			of(created([]byte(o.answers[0])).ID).begun = true
		case o.Kind != Commit && o.Kind != Rollback || o.Outcome == Refused:
		case o.Outcome == Unknown:
			of(o.Subject).unknown = true
		case o.Kind == Commit:
			of(o.Subject).committed = true
		default:
			of(o.Subject).rolledBack = true
		}
	}
	var out []Violation
	for _, id := range slices.Sorted(maps.Keys(settlements)) {
		s, status := settlements[id], stored[id]
		switch {
		case s.committed && s.rolledBack:
			out = append(out, violationOf(RuleBothEnds, "transaction "+id, "both its commit and its rollback were acknowledged"))
		case s.committed && status != "committed",
			s.rolledBack && status != "rolled_back",
			!s.committed && !s.rolledBack && !s.unknown && status != "pending":
			out = append(out, violationOf(RuleStatus, "transaction "+id, "it is stored as %q; %+v", status, *s))
		}
	}
	return out
}
