package redisstore

// The states of a session's record.
const (
	recordNone    = iota
	recordRefused // a tombstone: it never comes to life
	recordLive
	recordEnded
	recordClosed   // its usage is final
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
	held, leased                  int8 // by agents; what is leased is in v
	expired, late, done           bool // late: creation has become impossible; done: the parent has dropped the part
	untied                        bool // of a root: it is in no budget
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

	counted, past int8 // what the budget counts as used in this period, and what it counted before; counted is in its v
	turns         int8 // periods that ended
	unbounded     bool // there is no budget
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
	closesOverHolds
	closesOverLeases
	givesBackAfterClosing
	keepsUntied
	tiesWhatWasObserved
	turnsWhatIsReserved
	deletesWhatIsReserved
	setsBelowUsage
	takesBackAtOnce
)

const stop = -1

func (w *searchWorld) setAside(x, amount int8, wrong int) bool {
	n, p := &w.nodes[x], &w.nodes[x-1]
	switch {
	case n.done && wrong != refusesNoCopies:
		return false
	case n.part != partNone:
		return true
	case x == 1 && w.unbounded:
		return true
	case p.record != recordLive || p.expired || p.v+p.held+amount > p.limit:
		return false
	}
	p.v += amount
	n.part, n.aside = partAside, amount
	return true
}

func (w *searchWorld) create(x, amount, reserved int8) {
	if n := &w.nodes[x]; n.record == recordNone && !n.late {
		n.record, n.limit, n.untied = recordLive, amount, reserved == 0
	}
}

func (w *searchWorld) end(x int8, wrong int) {
	switch n := &w.nodes[x]; {
	case n.record == recordNone && wrong != withoutRefusal:
		n.record = recordRefused
	case n.record == recordLive:
		n.record, n.held = recordEnded, 0
	}
}

// closeUsage returns what a session has used, or false while that may change.
func (w *searchWorld) closeUsage(x int8, wrong int) (int8, bool) {
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
	case n.untied:
		return 0, wrong != keepsUntied
	case n.held > 0 && wrong != closesOverHolds || n.leased > 0 && wrong != closesOverLeases:
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
	if x > 1 {
		return
	}
	w.counted += used
	if w.unbounded {
		w.turn(asDocumented)
	}
}

// turn restarts what the budget counts as used.
func (w *searchWorld) turn(wrong int) {
	w.nodes[0].v -= w.counted
	w.past, w.counted = w.past+w.counted, 0
	if wrong == turnsWhatIsReserved {
		w.nodes[0].v = 0
	}
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
	bounded := x > 1 || !w.unbounded
	if x == 1 && bounded && n.part == partNone && (!n.done || wrong == raisesDropped) && p.v+limit <= p.limit { // the budget reserves for a session that has no reservation
		n.part, n.aside = partAside, limit
		p.v += limit
		return true
	}
	if n.part != partAside || p.record != recordLive || p.expired || bounded && p.v+p.held+more > p.limit {
		return false
	}
	p.v += more
	n.aside += more
	return true
}

func (w *searchWorld) change(x, add, granted int8, wrong int) {
	n := &w.nodes[x]
	switch {
	case n.record != recordLive || n.expired:
	case granted == ungranted && n.untied:
		n.limit += add
	case n.limit+add > granted && wrong != adoptsGrants:
	case n.untied && n.v+n.held > granted && wrong != tiesWhatWasObserved:
	default:
		n.limit, n.untied = n.limit+add, false
	}
}

// ungranted is what a top-up has without a budget: no session that is in one takes it.
const ungranted = -1
