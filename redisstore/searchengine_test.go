package redisstore

import "fmt"

// scenario is what runs at once in a search, from a start.
type scenario struct {
	processes []searchProcess
	holds     bool // agents hold, lease and give back
	observed  bool // the root has gone beyond its limits
	turns     int8 // how often the budget's period turns at most
	start     func(*searchWorld)
}

// search runs the protocol through every state.
type search struct {
	scenario
	wrong  int
	copies bool
	visit  func(searchWorld)
}

// run returns how many states there are, and a violation.
func (s search) run() (states int, fault error) {
	w := searchWorld{}
	w.nodes[0] = searchNode{record: recordLive, limit: 3}
	if s.start != nil {
		s.start(&w)
	}
	return explore(w, s.check, func(w searchWorld, visit func(searchWorld)) {
		s.visit = visit
		s.processesGoOn(w)
		s.timePasses(w)
		s.agentsSpend(w)
		if s.holds {
			s.agentsHold(w)
		}
	})
}

func (s search) processesGoOn(w searchWorld) {
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

// timePasses lets sessions expire, never before their descendants; ends the time in which a creation is possible; drops
// records whose TTL is over; and turns the budget's period.
func (s search) timePasses(w searchWorld) {
	if w.turns < s.turns {
		after := w
		after.turns++
		after.turn(s.wrong)
		s.visit(after)
	}
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

// agentsSpend charges live sessions, and settles leases late until the session is closed.
func (s search) agentsSpend(w searchWorld) {
	for x := 1; x < searchNodes; x++ {
		if n := w.nodes[x]; (n.record == recordLive || n.record == recordEnded) && n.v+n.held < n.limit {
			after := w
			after.nodes[x].v++
			after.nodes[x].own++
			s.visit(after)
		}
	}
}

// agentsHold begins transactions and leases, settles them, and gives back what was charged.
func (s search) agentsHold(w searchWorld) {
	for x := 1; x < searchNodes; x++ {
		n, do := w.nodes[x], func(change func(n *searchNode)) {
			after := w
			change(&after.nodes[x])
			s.visit(after)
		}
		open, closed := n.record == recordLive && !n.expired, n.record != recordLive && n.record != recordEnded
		if open && n.v+n.held < n.limit && n.held+n.leased == 0 {
			do(func(n *searchNode) { n.held++ })
			do(func(n *searchNode) { n.v, n.leased = n.v+1, n.leased+1 })
		}
		if n.held > 0 { // an action that was begun happens, whatever the session has become
			do(func(n *searchNode) {
				if n.held, n.own = n.held-1, n.own+1; !closed {
					n.v++
				}
			})
			do(func(n *searchNode) { n.held-- })
		}
		if n.leased > 0 { // spent, or expired
			do(func(n *searchNode) { n.leased, n.own = n.leased-1, n.own+1 })
		}
		if n.leased > 0 && (!closed || s.wrong == closesOverLeases) { // unspent
			do(func(n *searchNode) { n.v, n.leased = n.v-1, n.leased-1 })
		}
		if n.own > 0 && (n.record == recordLive || n.record == recordEnded || n.record == recordClosed && s.wrong == givesBackAfterClosing) {
			do(func(n *searchNode) { n.v, n.own = n.v-1, n.own-1 }) // a rollback of a commit, or a late settlement
		}
	}
}

// check checks what holds in every state, and that everything comes back from it whatever has crashed.
func (s search) check(w searchWorld) error {
	var below int8
	for x := searchNodes - 1; x >= 0; x-- {
		n := w.nodes[x]
		below += n.own + n.leased
		if x == 0 {
			below = w.inBudget(below)
		}
		exists := x == 0 || n.record == recordLive || n.record == recordEnded || n.record == recordClosed
		switch {
		case exists && below > n.limit && !(x == 0 && w.unbounded) && !(x == 1 && s.observed):
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
	late.settleAll(s.wrong)
	for i, p := range s.processes { // messages that were sent before, and arrive after everything was settled
		if late.at[i] != stop {
			p.steps[late.at[i]](&late, &late.local[i])
		}
	}
	return s.checkRecovery(late)
}

// inBudget is what the budget must count of what was spent: what its root has not given it yet, and what is used in this period.
func (w *searchWorld) inBudget(spent int8) int8 {
	if n := w.nodes[1]; n.untied || n.done || n.part != partAside {
		spent = 0
	}
	return spent + w.counted
}

func (s search) checkRecovery(w searchWorld) error {
	after := w
	after.settleAll(s.wrong)
	var spent int8
	for x := searchNodes - 1; x >= 0; x-- {
		n := after.nodes[x]
		spent += n.own
		if x == 0 && after.nodes[1].untied {
			spent = 0 // it counts no session that was never tied to it
		}
		counts := n.v
		if x == 0 {
			counts += after.past
		}
		switch {
		case n.part != partNone:
			return fmt.Errorf("the part of node %d never comes back: %+v, from %+v", x, after, w)
		case counts != spent && (x == 0 || n.record != recordNone):
			return fmt.Errorf("node %d counts %d, and %d were spent: %+v, from %+v", x, counts, spent, after, w)
		case x > 0 && !n.untied && n.record != recordNone && n.record != recordRefused && n.record != recordReleased:
			return fmt.Errorf("the record of node %d stays for ever: %+v, from %+v", x, after, w)
		}
	}
	return nil
}

// settleAll lets all sessions expire, and their holds and leases, and looks at every part as the service does.
func (w *searchWorld) settleAll(wrong int) {
	for x := int8(searchNodes - 1); x > 0; x-- {
		n := &w.nodes[x]
		n.expired, n.held, n.leased, n.own = true, 0, 0, n.own+n.leased
	}
	if wrong != keepsUntied {
		wrong = asDocumented
	}
	for x := int8(searchNodes - 1); x > 0; x-- {
		p, local := settling(x, wrong), [2]int8{}
		for at := int8(0); at != stop; {
			at = p.steps[at](w, &local)
		}
	}
}
