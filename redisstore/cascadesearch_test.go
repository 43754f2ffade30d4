package redisstore

import (
	"fmt"
	"testing"
)

// This search explores what goes down a tree of a root, its child and its grandchild: suspensions and their ends, shorter
// lifetimes, and limits that are enforced again; beside creations, longer lifetimes and sessions that begin to observe. It works as
// the search of protocolsearch_test.go.

// cascadeNode is the root (0), its child (1) or its grandchild (2).
type cascadeNode struct {
	record                   int8 // recordNone, recordRefused or recordLive
	part, hasChildren        bool // part: in the node above
	suspended, above, itself bool // above: it follows a suspension; itself: it is suspended by itself too
	asked                    bool // the truth: a caller suspended this session itself
	version, followed        int8 // of its suspension; of the one above that it followed last
	expires, narrowed        int8
	observes                 bool
}

const cascadeNodes = 3

type cascadeWorld struct {
	nodes [cascadeNodes]cascadeNode
	at    [5]int8
	local [5][2]int8
}

// What must hold once the processes of this kind are done.
const (
	changesNothingBelow = iota
	suspends
	shortens
	enforcesLimits
)

type cascadeProcess struct {
	kind  int
	steps []func(w *cascadeWorld, local *[2]int8) (next int8)
}

// The ways in which it can be wrong.
const (
	followsAnyVersion = iota + 1
	refusesNothing
	refusesOnlySuspended
	followsWhatWasBefore
	listsFirst
	looksForChildrenFirst
	ignoresNarrowing
)

func (n *cascadeNode) refuseIfNone(wrong int) bool {
	if n.record == recordNone && wrong != refusesNothing {
		n.record = recordRefused
	}
	return n.record != recordLive
}

// suspend is suspend_session.lua or resume_session.lua.
func (n *cascadeNode) suspend(suspended bool) {
	n.asked = suspended
	if n.above {
		n.itself = suspended
	} else {
		n.suspended = suspended
	}
	if n.hasChildren {
		n.version++
	}
}

// follow is suspend_descendant.lua.
func (n *cascadeNode) follow(suspended, version int8, wrong int) (goesOn bool) {
	if suspended == 0 && n.record != recordLive && wrong == refusesOnlySuspended || n.refuseIfNone(wrong) {
		return false
	}
	if version <= n.followed && wrong != followsAnyVersion {
		return false
	}
	was, after := n.suspended, suspended == 1 || n.itself || n.suspended && !n.above
	n.itself = suspended == 1 && (n.itself || was && !n.above)
	n.above, n.suspended = suspended == 1, after
	n.version, n.followed = n.version+1, version
	return true
}

type cascadeMove = func(*cascadeWorld, *[2]int8) int8

// below lists the children of the nodes from x on and does something to each, from step on.
func below(x, step int8, steps []cascadeMove, do func(w *cascadeWorld, x int8, local *[2]int8) bool) []cascadeMove {
	for x, step := x+1, step; x < cascadeNodes; x, step = x+1, step+2 {
		steps = append(steps, func(w *cascadeWorld, _ *[2]int8) int8 {
			if !w.nodes[x].part {
				return stop
			}
			return step + 1
		}, func(w *cascadeWorld, local *[2]int8) int8 {
			if !do(w, x, local) || x == cascadeNodes-1 {
				return stop
			}
			return step + 2
		})
	}
	return steps
}

func letSuspend(x int8, suspended bool, wrong int) cascadeProcess {
	steps := []cascadeMove{func(w *cascadeWorld, _ *[2]int8) int8 {
		n := &w.nodes[x]
		if n.record != recordLive {
			return stop
		}
		if n.suspend(suspended); !n.hasChildren {
			return stop
		}
		return 1
	}, func(w *cascadeWorld, local *[2]int8) int8 {
		local[0], local[1] = 0, w.nodes[x].version
		if w.nodes[x].suspended {
			local[0] = 1
		}
		return 2
	}}
	return cascadeProcess{suspends, below(x, 2, steps, func(w *cascadeWorld, x int8, local *[2]int8) bool {
		n := &w.nodes[x]
		goesOn := n.follow(local[0], local[1], wrong)
		if local[0], local[1] = 0, n.version; n.suspended {
			local[0] = 1
		}
		return goesOn
	})}
}

// narrowing changes a node, and then what is below it.
func narrowing(kind int, x int8, wrong int, change func(n *cascadeNode), follow func(n *cascadeNode, expires int8)) cascadeProcess {
	steps := []cascadeMove{func(w *cascadeWorld, local *[2]int8) int8 {
		if local[1] = 1; wrong == looksForChildrenFirst && !w.nodes[x].hasChildren || wrong == listsFirst && !w.nodes[x+1].part {
			local[1] = 0
		}
		return 1
	}, func(w *cascadeWorld, local *[2]int8) int8 {
		n := &w.nodes[x]
		if n.record != recordLive {
			return stop
		}
		if change(n); !n.hasChildren || local[1] == 0 {
			return stop
		}
		return 2
	}, func(w *cascadeWorld, local *[2]int8) int8 {
		local[0] = w.nodes[x].expires
		return 3
	}}
	return cascadeProcess{kind, below(x, 3, steps, func(w *cascadeWorld, x int8, local *[2]int8) bool {
		if n := &w.nodes[x]; !n.refuseIfNone(wrong) {
			n.narrowed++
			follow(n, local[0])
		}
		return true
	})}
}

func letExpireSooner(x int8, wrong int) cascadeProcess {
	return narrowing(shortens, x, wrong, func(n *cascadeNode) { n.expires = 1 },
		func(n *cascadeNode, expires int8) { n.expires = min(n.expires, expires) })
}

func letEnforce(x int8, wrong int) cascadeProcess {
	return narrowing(enforcesLimits, x, wrong, func(n *cascadeNode) { n.observes = false },
		func(n *cascadeNode, _ int8) { n.observes = false })
}

// creatingIn creates a node that is to last so long, and observes if the one above does.
func creatingIn(x, lifetime int8, wrong int) cascadeProcess {
	return cascadeProcess{changesNothingBelow, []cascadeMove{func(w *cascadeWorld, local *[2]int8) int8 {
		n, above := &w.nodes[x], &w.nodes[x-1]
		if above.record != recordLive || above.suspended {
			return stop
		}
		n.part, above.hasChildren = true, true
		if local[0], local[1] = min(above.expires, lifetime), 2*above.version; above.observes {
			local[1]++
		}
		return 1
	}, func(w *cascadeWorld, local *[2]int8) int8 {
		if n := &w.nodes[x]; n.record == recordNone {
			n.record, n.expires, n.observes, n.followed = recordLive, local[0], local[1]%2 == 1, local[1]/2
			if wrong == followsWhatWasBefore {
				n.followed = -1
			}
		}
		return stop
	}}}
}

// widening lets a node last as long as 3, or observe, if the one above grants it.
func widening(x int8, wrong int, granted func(above *cascadeNode) bool, change func(n *cascadeNode)) cascadeProcess {
	return cascadeProcess{changesNothingBelow, []cascadeMove{func(w *cascadeWorld, local *[2]int8) int8 {
		if local[0] = w.nodes[x].narrowed; w.nodes[x].record != recordLive {
			return stop
		}
		return 1
	}, func(w *cascadeWorld, _ *[2]int8) int8 {
		if above := &w.nodes[x-1]; above.record != recordLive || !granted(above) {
			return stop
		}
		return 2
	}, func(w *cascadeWorld, local *[2]int8) int8 {
		if n := &w.nodes[x]; n.narrowed == local[0] || wrong == ignoresNarrowing {
			change(n)
		}
		return stop
	}}}
}

func letLastLonger(x int8, wrong int) cascadeProcess {
	return widening(x, wrong, func(above *cascadeNode) bool { return above.expires == 3 }, func(n *cascadeNode) { n.expires = 3 })
}

func letObserve(x int8, wrong int) cascadeProcess {
	return widening(x, wrong, func(above *cascadeNode) bool { return above.observes }, func(n *cascadeNode) { n.observes = true })
}

// checkCascades checks what holds once everything of a kind is done.
func checkCascades(w cascadeWorld, processes []cascadeProcess) error {
	var open [enforcesLimits + 1]bool
	for i, p := range processes {
		open[p.kind] = open[p.kind] || w.at[i] != stop
	}
	for x := 1; x < cascadeNodes; x++ {
		n, above := w.nodes[x], w.nodes[x-1]
		switch {
		case n.record != recordLive || above.record != recordLive:
		case !open[suspends] && n.suspended != (above.suspended || n.asked):
			return fmt.Errorf("node %d does not follow the suspension above: %+v", x, w)
		case !open[shortens] && n.expires > above.expires:
			return fmt.Errorf("node %d lasts longer than the one above: %+v", x, w)
		case !open[enforcesLimits] && n.observes && !above.observes:
			return fmt.Errorf("node %d observes below one that enforces: %+v", x, w)
		}
	}
	return nil
}

// exploreCascades returns a violation, if there is one.
func exploreCascades(processes []cascadeProcess) error {
	w := cascadeWorld{}
	w.nodes[0] = cascadeNode{record: recordLive, expires: 3, observes: true}
	check := func(w cascadeWorld) error { return checkCascades(w, processes) }
	return errOf(explore(w, check, func(w cascadeWorld, visit func(cascadeWorld)) {
		for i, p := range processes {
			if w.at[i] != stop {
				after := w
				after.at[i] = p.steps[w.at[i]](&after, &after.local[i])
				visit(after)
			}
		}
	}))
}

func cascades(wrong int) map[string][]cascadeProcess {
	return map[string][]cascadeProcess{
		"suspensions": {creatingIn(1, 3, wrong), creatingIn(2, 3, wrong), letSuspend(0, true, wrong), letSuspend(0, false, wrong),
			letSuspend(0, true, wrong)},
		"suspensions at two levels": {creatingIn(1, 3, wrong), creatingIn(2, 3, wrong), letSuspend(0, true, wrong), letSuspend(1, true, wrong),
			letSuspend(0, false, wrong)},
		"a session resumed below": {creatingIn(1, 3, wrong), creatingIn(2, 3, wrong), letSuspend(1, true, wrong), letSuspend(0, true, wrong),
			letSuspend(1, false, wrong)},
		"lifetimes":                 {creatingIn(1, 3, wrong), creatingIn(2, 2, wrong), letExpireSooner(0, wrong), letLastLonger(2, wrong), letLastLonger(1, wrong)},
		"lifetimes at two levels":   {creatingIn(1, 3, wrong), creatingIn(2, 2, wrong), letExpireSooner(0, wrong), letExpireSooner(1, wrong), letLastLonger(2, wrong)},
		"enforcement":               {creatingIn(1, 3, wrong), creatingIn(2, 3, wrong), letEnforce(0, wrong), letObserve(1, wrong), letObserve(2, wrong)},
		"enforcement at two levels": {creatingIn(1, 3, wrong), creatingIn(2, 3, wrong), letEnforce(0, wrong), letEnforce(1, wrong), letObserve(2, wrong)},
	}
}

func TestNoOrderOfStepsLeavesADescendantBehind(t *testing.T) {
	t.Parallel()
	for name, processes := range cascades(asDocumented) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustDo(t, exploreCascades(processes))
		})
	}
}

func TestTheSearchFindsWhatLeavesADescendantBehind(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		wrong int
		in    string
	}{
		{"a session follows whatever it is told last", followsAnyVersion, "suspensions"},
		{"no tombstone is left for a creation in flight", refusesNothing, "suspensions"},
		{"a new session follows what its parent was told before it", followsWhatWasBefore, "suspensions"},
		{"no tombstone is left when a suspension ends", refusesOnlySuspended, "suspensions"},
		{"no tombstone is left when a lifetime is shortened", refusesNothing, "lifetimes"},
		{"no tombstone is left when limits are enforced", refusesNothing, "enforcement"},
		{"the children are read before the change", listsFirst, "lifetimes"},
		{"whether there are children is read before the change", looksForChildrenFirst, "lifetimes"},
		{"a longer lifetime that was granted before holds", ignoresNarrowing, "lifetimes"},
		{"a grant to observe holds that was given before", ignoresNarrowing, "enforcement"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if exploreCascades(cascades(row.wrong)[row.in]) == nil {
				t.Error("the search finds nothing")
			}
		})
	}
}
