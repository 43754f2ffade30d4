package faults

import (
	"time"

	"remit/loadtest/fleet"
)

// Trees are trees of sessions that grow in an organization of their own, under its budget. The growers keep ledgers of their own and
// check every answer.
type Trees struct {
	*fleet.Growth
	s *Scenario
}

// StartTrees starts growers on so many trees at once, each followed by another.
func (s *Scenario) StartTrees(trees int) *Trees {
	s.t.Helper()
	growth, err := fleet.Grow(s.t.Context(), s.urls(), trees)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(growth.Stop)
	return &Trees{growth, s}
}

// AwaitCalls returns when growers have had so many more calls acknowledged.
func (w *Trees) AwaitCalls(more int64) {
	w.s.t.Helper()
	want := w.Acknowledged() + more
	waitEvery(w.s.t, 2*time.Millisecond, workPatience, "growers work", func() bool { return w.Acknowledged() >= want })
}

// NeedParts stops the growers, ends all below the roots that live, and asks each of these for all that is free then. A part without a
// session takes half a minute to come back.
func (w *Trees) NeedParts() { w.Growth.NeedParts(w.s.t.Context()) }

// Finish stops the growers, ends all trees, asks the budget for all that is free then, and checks everything.
func (w *Trees) Finish() {
	w.s.t.Helper()
	report, reconciled := w.Growth.Finish(w.s.t.Context())
	w.s.t.Logf("trees: %s", report)
	if !reconciled {
		w.s.t.Error("the totals of the trees do not reconcile")
	}
}
