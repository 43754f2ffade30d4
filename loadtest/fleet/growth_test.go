package fleet

import (
	"strings"
	"testing"
	"time"
)

func TestGrowthFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault fault
		rule  rule // empty: everything reconciles
	}{
		"in order":                        {noFault, ""},
		"responses get lost":              {hangsUp, ""},
		"charges are lost":                {losesCharges, ruleLost},
		"a child's usage counts twice":    {showsMore, ruleSurplus},
		"what is set aside does not come": {keepsParts, rulePart},
		"suspensions are forgotten":       {neverSuspends, ruleSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := must(Grow(t.Context(), []string{startFaulty(t, test.fault)}, 3))(t)
			// Only a call below a suspended session finds that fault.
			for g.Acknowledged() < 600 || test.rule == ruleSuspended && g.f.audit.clean() && g.Acknowledged() < 100_000 {
				time.Sleep(5 * time.Millisecond)
			}
			g.Stop()
			g.f.plant(t.Context(), 0, 1, time.Now()) // the last root of this slot has no action left, so it can hold nothing
			full := g.f.trees[0].root()
			g.f.charge(t.Context(), full, action{kind: lateAction.kind, requested: charge{count: full.limits.actions}}, time.Now())
			g.f.cfg.patience = 0 // all comes back at once, or never
			g.NeedParts(t.Context())
			report, reconciled := g.Finish(t.Context())
			if reconciled != (test.rule == "") || !strings.Contains(report, string(test.rule)) {
				t.Errorf("reconciled: %t, want %q in\n%s", reconciled, test.rule, report)
			}
		})
	}
}
