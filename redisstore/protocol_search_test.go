package redisstore

import (
	"fmt"
	"testing"

	"remit/internal/suite"
)

// The search explores the protocol of docs/budgets.md for a budget, a root session, its child and its grandchild. A process is
// a sequence of steps, each one script of that page. Any process may go next, so all interleavings are met; one that never goes
// on is a crash, or a lost message; one that goes on much later is a delayed message. A step may also leave a copy of its
// message behind, which arrives a second time at any later moment.

// The states of a session's record.
const (
	recordNone    = iota
	recordRefused // a tombstone: it never comes to life
	recordLive
	recordEnded
	recordClosed   // its books are closed
	recordReleased // its parent has taken its usage; its TTL runs
)

// The states of a part, which stands in the parent's cell.
const (
	partNone = iota
	partAside
	partTaken
)

// searchNode is the budget (0), the root (1), its child (2) or its grandchild (3), with its part in the node above it.
type searchNode struct {
	record, part, aside, limit, v int8
	own                           int8 // what was spent in this session itself: the truth that v must cover
	expired, late, done           bool // late: creation has become impossible; done: the parent has dropped the part
}

const searchNodes = 4

// searchWorld is a state of the search.
type searchWorld struct {
	nodes [searchNodes]searchNode
	at    [8]int8    // the next step of each process, -1 when it is done
	local [8][2]int8 // what each process remembers
	copy  [3]int8    // a message that arrives again: process+1, step, and its local
	used  bool       // the one copy was made
	ended bool       // the end of the root was acknowledged
}

// searchProcess runs its step at.
type searchProcess struct {
	name  string
	steps []func(w *searchWorld, local *[2]int8) (next int8)
}

// The ways in which a protocol can be wrong, each of which the search must find.
const (
	asDocumented = iota
	createsFirst
	withoutRefusal
	releasesFirst
	dropsFirst
	takesTwice
	raisesLast
	adoptsGrants
	refusesNoCopies
	walksFirst
	closesOverChildren
	raisesDropped
)

const stop = -1

func (w *searchWorld) setAside(x, amount int8, wrong int) bool {
	n, p := &w.nodes[x], &w.nodes[x-1]
	switch {
	case n.done && wrong != refusesNoCopies:
		return false
	case n.part != partNone:
		return true
	case p.record != recordLive || p.expired || p.v+amount > p.limit:
		return false
	}
	p.v += amount
	n.part, n.aside = partAside, amount
	return true
}

func (w *searchWorld) create(x, amount int8) {
	if n := &w.nodes[x]; n.record == recordNone && !n.late {
		n.record, n.limit = recordLive, amount
	}
}

func (w *searchWorld) end(x int8, wrong int) {
	switch n := &w.nodes[x]; {
	case n.record == recordNone && wrong != withoutRefusal:
		n.record = recordRefused
	case n.record == recordLive:
		n.record = recordEnded
	}
}

// closeBooks returns what a session has used, or false while that may change.
func (w *searchWorld) closeBooks(x int8, wrong int) (int8, bool) {
	n := &w.nodes[x]
	switch {
	case n.record == recordNone || n.record == recordRefused:
		if wrong != withoutRefusal {
			n.record = recordRefused
		}
		return 0, true
	case n.record == recordLive && !n.expired:
		return 0, false
	case wrong != closesOverChildren && int(x)+1 < searchNodes && w.nodes[x+1].part != partNone:
		return 0, false
	}
	n.record = max(n.record, recordClosed)
	return n.v, true
}

func (w *searchWorld) take(x, used int8, wrong int) {
	n := &w.nodes[x]
	if n.part != partAside && wrong != takesTwice {
		return
	}
	w.nodes[x-1].v += used - n.aside
	n.part = partTaken
}

func (w *searchWorld) release(x int8) {
	if n := &w.nodes[x]; n.record == recordClosed {
		n.record = recordReleased
	}
}

func (w *searchWorld) drop(x int8, wrong int) {
	if n := &w.nodes[x]; n.part == partTaken || wrong == dropsFirst {
		n.part, n.aside, n.done = partNone, 0, true
	}
}

func (w *searchWorld) raise(x, limit int8, wrong int) bool {
	n, p := &w.nodes[x], &w.nodes[x-1]
	more := max(limit-n.aside, 0)
	if x == 1 && n.part == partNone && (!n.done || wrong == raisesDropped) && p.v+limit <= p.limit { // the budget reserves for a session that has no reservation
		n.part, n.aside = partAside, limit
		p.v += limit
		return true
	}
	if n.part != partAside || p.record != recordLive || p.expired || p.v+more > p.limit {
		return false
	}
	p.v += more
	n.aside += more
	return true
}

func (w *searchWorld) change(x, add, granted int8, wrong int) {
	n := &w.nodes[x]
	if n.record == recordLive && !n.expired && (n.limit+add <= granted || wrong == adoptsGrants) {
		n.limit += add
	}
}

type searchMove = func(*searchWorld, *[2]int8) int8

func creating(x, amount int8, wrong int) searchProcess {
	aside := func(w *searchWorld, _ *[2]int8) int8 {
		if !w.setAside(x, amount, wrong) {
			return stop
		}
		return 1
	}
	create := func(w *searchWorld, _ *[2]int8) int8 {
		w.create(x, amount)
		return stop
	}
	if wrong == createsFirst {
		return searchProcess{"create", []searchMove{
			func(w *searchWorld, _ *[2]int8) int8 { w.create(x, amount); return 1 },
			func(w *searchWorld, _ *[2]int8) int8 { w.setAside(x, amount, wrong); return stop },
		}}
	}
	return searchProcess{"create", []searchMove{aside, create}}
}

// settling closes a session's books and brings its part back.
func settling(x int8, wrong int) searchProcess {
	closing := func(w *searchWorld, local *[2]int8) int8 {
		if w.nodes[x].part == partNone {
			return stop
		}
		if w.nodes[x].part == partTaken && wrong != takesTwice {
			return 2
		}
		used, closed := w.closeBooks(x, wrong)
		if !closed {
			return stop
		}
		local[0] = used
		return 1
	}
	take := func(w *searchWorld, local *[2]int8) int8 { w.take(x, local[0], wrong); return 2 }
	release := func(w *searchWorld, _ *[2]int8) int8 { w.release(x); return 3 }
	drop := func(w *searchWorld, _ *[2]int8) int8 { w.drop(x, wrong); return stop }
	switch wrong {
	case releasesFirst:
		return searchProcess{"settle", []searchMove{closing,
			func(w *searchWorld, _ *[2]int8) int8 { w.release(x); return 2 },
			func(w *searchWorld, local *[2]int8) int8 { w.take(x, local[0], wrong); return 3 }, drop}}
	case dropsFirst:
		return searchProcess{"settle", []searchMove{closing,
			func(w *searchWorld, _ *[2]int8) int8 { w.drop(x, wrong); return 2 },
			func(w *searchWorld, local *[2]int8) int8 { w.take(x, local[0], wrong); return 3 }, release}}
	}
	return searchProcess{"settle", []searchMove{closing, take, release, drop}}
}

func toppingUp(x int8, wrong int) searchProcess {
	read := func(w *searchWorld, local *[2]int8) int8 {
		if w.nodes[x].record != recordLive {
			return stop
		}
		local[0] = w.nodes[x].limit + 1
		return 1
	}
	raise := func(w *searchWorld, local *[2]int8) int8 {
		if !w.raise(x, local[0], wrong) {
			return stop
		}
		return 2
	}
	change := func(w *searchWorld, local *[2]int8) int8 { w.change(x, 1, local[0], wrong); return stop }
	if wrong == raisesLast {
		return searchProcess{"top up", []searchMove{read,
			func(w *searchWorld, local *[2]int8) int8 { w.change(x, 1, local[0], wrong); return 2 },
			func(w *searchWorld, local *[2]int8) int8 { w.raise(x, local[0], wrong); return stop }}}
	}
	return searchProcess{"top up", []searchMove{read, raise, change}}
}

// endingAll ends the root, then its descendants. It reads a node's part after it has ended the node.
func endingAll(wrong int) searchProcess {
	var steps []searchMove
	for x := int8(1); x < searchNodes; x++ {
		steps = append(steps, func(w *searchWorld, local *[2]int8) int8 {
			if x == 1 && w.nodes[x].record == recordNone {
				return stop // 404
			}
			if x > 1 && wrong != walksFirst {
				local[0] = w.nodes[x].part
			}
			if x == 1 && wrong == walksFirst {
				local[0], local[1] = w.nodes[2].part, w.nodes[3].part
			}
			if x == 3 && wrong == walksFirst {
				local[0] = local[1]
			}
			if x > 1 && local[0] == partNone {
				w.ended = true
				return stop
			}
			return 2*x - 1
		}, func(w *searchWorld, _ *[2]int8) int8 {
			w.end(x, wrong)
			if x == searchNodes-1 {
				w.ended = true
				return stop
			}
			return 2 * x
		})
	}
	return searchProcess{"end", steps}
}

// search runs the protocol from its start through every state and returns a violation, and how many states there are.
type search struct {
	processes []searchProcess
	wrong     int
	copies    bool
	seen      map[searchWorld]struct{}
	next      []searchWorld
}

func newSearch(wrong int, copies bool, processes ...searchProcess) *search {
	w := searchWorld{}
	w.nodes[0] = searchNode{record: recordLive, limit: 3}
	s := &search{processes: processes, wrong: wrong, copies: copies, seen: map[searchWorld]struct{}{}}
	s.visit(w)
	return s
}

func (s *search) visit(w searchWorld) {
	if _, known := s.seen[w]; !known {
		s.seen[w] = struct{}{}
		s.next = append(s.next, w)
	}
}

func (s *search) run() error {
	for len(s.next) > 0 {
		w := s.next[len(s.next)-1]
		s.next = s.next[:len(s.next)-1]
		if err := s.check(w); err != nil {
			return err
		}
		s.processesGoOn(w)
		s.timePasses(w)
		s.agentsSpend(w)
	}
	return nil
}

func (s *search) processesGoOn(w searchWorld) {
	for i, p := range s.processes {
		step := w.at[i]
		if step == stop {
			continue
		}
		after := w
		after.at[i] = p.steps[step](&after, &after.local[i])
		if after.at[i] == stop {
			after.local[i] = [2]int8{}
		}
		s.visit(after)
		if s.copies && !w.used {
			after.used, after.copy = true, [3]int8{int8(i) + 1, step, w.local[i][0]}
			s.visit(after)
		}
	}
	if w.copy[0] != 0 {
		after := w
		local := [2]int8{w.copy[2]}
		s.processes[w.copy[0]-1].steps[w.copy[1]](&after, &local)
		after.copy = [3]int8{}
		s.visit(after)
	}
}

// timePasses lets sessions expire, never before their descendants; ends the time in which a creation is possible; and drops
// records whose TTL is over.
func (s *search) timePasses(w searchWorld) {
	for x := 1; x < searchNodes; x++ {
		n := w.nodes[x]
		after := w
		if !n.expired && (x == searchNodes-1 || w.nodes[x+1].expired) {
			after.nodes[x].expired = true
			s.visit(after)
			after = w
		}
		switch {
		case !n.late && (n.record == recordNone || n.record == recordRefused || n.record == recordReleased):
			after.nodes[x].late = true
			s.visit(after)
		case n.late && (n.record == recordRefused || n.record == recordReleased):
			after.nodes[x].record = recordNone
			s.visit(after)
		}
	}
}

// agentsSpend charges live sessions, and settles leases late until the books are closed.
func (s *search) agentsSpend(w searchWorld) {
	for x := 1; x < searchNodes; x++ {
		if n := w.nodes[x]; (n.record == recordLive || n.record == recordEnded) && n.v < n.limit {
			after := w
			after.nodes[x].v++
			after.nodes[x].own++
			s.visit(after)
		}
	}
}

// check checks what holds in every state, and that everything comes back from it whatever has crashed.
func (s *search) check(w searchWorld) error {
	var below int8
	for x := searchNodes - 1; x >= 0; x-- {
		n := w.nodes[x]
		below += n.own
		exists := x == 0 || n.record == recordLive || n.record == recordEnded || n.record == recordClosed
		switch {
		case exists && below > n.limit:
			return fmt.Errorf("node %d has %d spent below it, more than its limit: %+v", x, below, w)
		case exists && n.v < below:
			return fmt.Errorf("node %d counts less than was spent: %+v", x, w)
		case x > 0 && w.ended && n.record == recordLive:
			return fmt.Errorf("node %d lives after the end was acknowledged: %+v", x, w)
		}
	}
	if err := s.checkRecovery(w); err != nil {
		return err
	}
	late := w
	late.settleAll()
	for i, p := range s.processes { // messages that were sent before, and arrive after everything was settled
		if late.at[i] != stop {
			p.steps[late.at[i]](&late, &late.local[i])
		}
	}
	return s.checkRecovery(late)
}

func (s *search) checkRecovery(w searchWorld) error {
	after := w
	after.settleAll()
	var spent int8
	for x := searchNodes - 1; x >= 0; x-- {
		n := after.nodes[x]
		spent += n.own
		switch {
		case n.part != partNone:
			return fmt.Errorf("the part of node %d never comes back: %+v, from %+v", x, after, w)
		case n.v != spent && (x == 0 || n.record != recordNone):
			return fmt.Errorf("node %d counts %d, and %d were spent: %+v, from %+v", x, n.v, spent, after, w)
		case x > 0 && n.record != recordNone && n.record != recordRefused && n.record != recordReleased:
			return fmt.Errorf("the record of node %d stays for ever: %+v, from %+v", x, after, w)
		}
	}
	return nil
}

// settleAll lets all sessions expire, and looks at every part as the service does.
func (w *searchWorld) settleAll() {
	for x := int8(searchNodes - 1); x > 0; x-- {
		w.nodes[x].expired = true
	}
	for x := int8(searchNodes - 1); x > 0; x-- {
		p, local := settling(x, asDocumented), [2]int8{}
		for at := int8(0); at != stop; {
			at = p.steps[at](w, &local)
		}
	}
}

// searches are the processes that run at once, with the limits that they ask for.
func searches(wrong int) map[string][]searchProcess {
	return map[string][]searchProcess{
		"an end": {creating(1, 2, wrong), creating(2, 1, wrong), creating(3, 1, wrong), endingAll(wrong), settling(3, wrong),
			settling(2, wrong)},
		"settlements":             {creating(1, 2, wrong), creating(2, 1, wrong), settling(2, wrong), settling(2, wrong), settling(1, wrong)},
		"top-ups of what is over": {creating(1, 1, wrong), creating(2, 1, wrong), toppingUp(1, wrong), settling(2, wrong), settling(1, wrong), settling(1, wrong)},
		"top-ups":                 {creating(1, 3, wrong), creating(2, 1, wrong), toppingUp(2, wrong), toppingUp(2, wrong), settling(2, wrong)},
		"top-ups along the tree": {creating(1, 1, wrong), creating(2, 1, wrong), creating(3, 1, wrong), toppingUp(1, wrong),
			toppingUp(2, wrong), toppingUp(3, wrong)},
	}
}

func TestNoOrderOfStepsAndCrashesOverspendsOrLosesAPart(t *testing.T) {
	t.Parallel()
	for name, processes := range searches(asDocumented) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSearch(asDocumented, suite.Long, processes...)
			if err := s.run(); err != nil {
				t.Error(err)
			}
			t.Logf("%d states", len(s.seen))
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
		{"books close over open children", closesOverChildren, "an end", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if newSearch(row.wrong, row.copies, searches(row.wrong)[row.in]...).run() == nil {
				t.Error("the search finds nothing")
			}
		})
	}
}
