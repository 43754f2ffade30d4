package redisstore

import (
	"testing"

	"remit/test/suite"
)

// The search explores the protocol of lua/budgets/README.md for a budget, a root session, its child and its grandchild. A process is
// a sequence of steps, each one script of that page. Any process may go next, so all interleavings are met; one that never goes
// on is a crash, or a lost message; one that goes on much later is a delayed message. A step may also leave a copy of its
// message behind, which arrives a second time at any later moment. Meanwhile agents charge, hold, lease and give back, sessions
// expire, records and tombstones vanish, periods turn and the budget changes. cascadesearch_test.go explores what goes down a tree.

// searches are the processes that run at once, with the limits that they ask for.
func searches(wrong int) map[string]scenario {
	of := func(processes ...searchProcess) scenario { return scenario{processes: processes} }
	return map[string]scenario{
		"an end": of(creating(1, 2, wrong), creating(2, 1, wrong), creating(3, 1, wrong), endingAll(wrong), settling(3, wrong),
			settling(2, wrong)),
		"settlements":             of(creating(1, 2, wrong), creating(2, 1, wrong), settling(2, wrong), settling(2, wrong), settling(1, wrong)),
		"top-ups of what is over": of(creating(1, 1, wrong), creating(2, 1, wrong), toppingUp(1, wrong), settling(2, wrong), settling(1, wrong), settling(1, wrong)),
		"top-ups":                 of(creating(1, 3, wrong), creating(2, 1, wrong), toppingUp(2, wrong), toppingUp(2, wrong), settling(2, wrong)),
		"top-ups along the tree": of(creating(1, 1, wrong), creating(2, 1, wrong), creating(3, 1, wrong), toppingUp(1, wrong),
			toppingUp(2, wrong), toppingUp(3, wrong)),
		"holds and leases": {processes: []searchProcess{creating(1, 2, wrong), creating(2, 1, wrong), settling(2, wrong), settling(1, wrong)},
			holds: true},
		"a refused creation": of(creating(1, 3, wrong), refused(2, 2, wrong), repeated(2, 2), settling(2, wrong)),
		"periods":            {processes: []searchProcess{creating(1, 2, wrong), toppingUp(1, wrong), settling(1, wrong), setting(2, wrong)}, turns: 2},
		"a budget that goes and comes": {processes: []searchProcess{creating(1, 2, wrong), setting(-1, wrong), toppingUp(1, wrong),
			settling(1, wrong), settling(1, wrong), setting(3, wrong)}},
		"a budget that comes later": {processes: []searchProcess{toppingUp(1, wrong), toppingUp(1, wrong), creating(2, 1, wrong), settling(1, wrong)},
			start: rootInNoBudget(1, 1)},
		"a budget after a session has observed": {processes: []searchProcess{toppingUp(1, wrong), toppingUp(1, wrong), settling(1, wrong)},
			start: rootInNoBudget(1, 3), observed: true, holds: true},
	}
}

// rootInNoBudget starts with a root session in no budget that has used so much, which may be more than its limit.
func rootInNoBudget(limit, used int8) func(*searchWorld) {
	return func(w *searchWorld) {
		w.nodes[1] = searchNode{record: recordLive, limit: limit, v: used, own: used, untied: true}
	}
}

func TestNoOrderOfStepsAndCrashesOverspendsOrLosesAPart(t *testing.T) {
	t.Parallel()
	for name, of := range searches(asDocumented) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states, fault := search{scenario: of, wrong: asDocumented, copies: suite.Long}.run()
			if fault != nil {
				t.Error(fault)
			}
			t.Logf("%d states", states)
		})
	}
}

func TestTheSearchFindsWhatIsWrongWithOtherProtocols(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		wrong  int
		in     string
		copies bool
	}{
		{"the child is created before its part is set aside", createsFirst, "top-ups along the tree", false},
		{"no tombstone is left for a creation in flight", withoutRefusal, "settlements", false},
		{"the record may expire before its usage is taken", releasesFirst, "settlements", false},
		{"the part is dropped before its usage is taken", dropsFirst, "settlements", false},
		{"usage is taken again", takesTwice, "settlements", false},
		{"a limit is raised before the part", raisesLast, "top-ups along the tree", false},
		{"a limit is raised beyond what was granted", adoptsGrants, "top-ups", false},
		{"an old message sets a dropped part aside again", refusesNoCopies, "settlements", true},
		{"the children are read before their parent ends", walksFirst, "an end", false},
		{"a top-up sets a dropped part aside again", raisesDropped, "top-ups of what is over", false},
		{"a session closes over open children", closesOverChildren, "an end", false},
		{"a session closes over pending transactions", closesOverHolds, "holds and leases", false},
		{"a session closes over open leases", closesOverLeases, "holds and leases", false},
		{"a closed session gives back", givesBackAfterClosing, "holds and leases", false},
		{"a reservation stays for a session that was never tied to it", keepsUntied, "a budget that comes later", false},
		{"a session is tied to less than it has used", tiesWhatWasObserved, "a budget after a session has observed", false},
		{"a period forgets what is reserved", turnsWhatIsReserved, "periods", false},
		{"a budget's end forgets what is reserved", deletesWhatIsReserved, "a budget that goes and comes", false},
		{"the part of a refused creation comes back while a repetition may create", takesBackAtOnce, "a refused creation", false},
		{"a budget is set below what is reserved", setsBelowUsage, "periods", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, fault := (search{scenario: searches(row.wrong)[row.in], wrong: row.wrong, copies: row.copies}).run(); fault == nil {
				t.Error("the search finds nothing")
			}
		})
	}
}
