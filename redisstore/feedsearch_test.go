package redisstore

import (
	"fmt"
	"testing"
)

// The search runs the protocol of docs/events.md through every order of the steps of two instances that change one agent, lead
// its feed, die at any step, and are replaced. It keeps what the scripts keep, and nothing of what they need not.

type feedWorld struct {
	trail, cursor, feed int8 // events in the trail; of those, up to which the feed has them; events in the feed
	marked, taken       bool
	token               int8 // of the last leader
	lease               bool // it has not run out
	deaths              int8
	instances           [2]feedInstance
}

// feedInstance is what an instance has in memory, and its entry in Redis, which outlives it.
type feedInstance struct {
	entered bool // in Redis
	gone    bool // a later one has its place, which the entry does not know
	sure    bool // it knows that it has entered
	changed int8 // it has changed the agent so often
	toMark  bool
	token   int8 // with which it leads, 0 for none
	reading bool // it has taken the agent
	from    int8 // the cursor that it took
	read    int8 // up to which event it has read, -1 for not yet
}

// Ways to get the protocol wrong, each of which the search finds.
const (
	marksFirst      = iota + 1 // and changes then
	entersLate                 // after the change
	keepsTheMark               // until the events are appended, and drops it then
	appendsUnfenced            // without a look at the token and the cursor
	dropsTaken                 // a new leader forgets what the last one had taken
	rests                      // in a second step after it found nothing marked
	feedWrongs
)

const mostChanges, mostDeaths, mostTokens = 2, 2, 4

// feedSteps visits the states that follow from w.
func feedSteps(w feedWorld, wrong int, visit func(feedWorld)) {
	do := func(change func(*feedWorld)) {
		after := w
		change(&after)
		visit(after)
	}
	if w.lease {
		do(func(w *feedWorld) { w.lease = false }) // time passes
	}
	for i := range w.instances {
		n := w.instances[i]
		on := func(change func(w *feedWorld, n *feedInstance)) {
			do(func(w *feedWorld) { change(w, &w.instances[i]) })
		}
		if w.deaths < mostDeaths {
			on(func(w *feedWorld, n *feedInstance) {
				w.deaths++
				*n = feedInstance{entered: n.entered, gone: n.entered || n.gone, changed: n.changed}
			})
		}
		if !n.sure && !n.gone {
			on(func(_ *feedWorld, n *feedInstance) { n.entered, n.sure = true, true })
		}
		if (n.sure || wrong == entersLate) && n.changed < mostChanges && !n.gone {
			on(func(w *feedWorld, n *feedInstance) {
				w.trail, n.changed = w.trail+1, n.changed+1
				n.toMark = wrong != marksFirst
			})
		}
		if n.toMark || wrong == marksFirst && n.sure && n.changed < mostChanges {
			on(func(w *feedWorld, n *feedInstance) {
				w.marked, n.toMark = true, false
				w.lead(n, wrong)
			})
		}
		if (w.marked || w.taken || w.hasGone()) && n.token == 0 {
			on(func(w *feedWorld, n *feedInstance) { w.lead(n, wrong) }) // the patrol
		}
		if n.token != 0 {
			leaderSteps(w, i, wrong, visit)
		}
	}
}

// hasGone says whether an instance has ended without leaving.
func (w *feedWorld) hasGone() bool { return w.instances[0].gone || w.instances[1].gone }

func (w *feedWorld) lead(n *feedInstance, wrong int) {
	if w.lease && n.token != w.token || w.token == mostTokens {
		return
	}
	w.token++
	w.lease, n.token, n.reading = true, w.token, false
	if w.taken {
		w.taken, w.marked = false, w.marked || wrong != dropsTaken
	}
}

// leaderSteps are those of an instance that leads, or has yet to learn that it does not.
func leaderSteps(w feedWorld, i, wrong int, visit func(feedWorld)) {
	n := w.instances[i]
	on := func(change func(w *feedWorld, n *feedInstance)) {
		after := w
		change(&after, &after.instances[i])
		visit(after)
	}
	lost := func(_ *feedWorld, n *feedInstance) { n.token, n.reading = 0, false }
	cutOff := n.token != w.token
	switch {
	case !n.reading && cutOff:
		on(lost)
	case !n.reading && w.marked:
		on(func(w *feedWorld, n *feedInstance) {
			w.marked, w.taken = wrong == keepsTheMark, wrong != keepsTheMark
			n.reading, n.from, n.read = true, w.cursor, -1
		})
	case !n.reading && w.hasGone(): // it looks at all agents
		on(func(w *feedWorld, _ *feedInstance) {
			w.marked = w.marked || w.cursor < w.trail
			for j := range w.instances {
				if w.instances[j].gone {
					w.instances[j].gone, w.instances[j].entered = false, false
				}
			}
		})
	case !n.reading && wrong == rests:
		on(func(w *feedWorld, n *feedInstance) { n.read, n.reading = -2, true })
	case !n.reading:
		on(func(w *feedWorld, n *feedInstance) { w.lease, n.token = false, 0 })
	case n.read == -2: // it rests although there may be a mark by now, and no instance can lead
		on(func(w *feedWorld, n *feedInstance) { w.marked, w.lease, n.token, n.reading = false, false, 0, false })
	case n.read == -1:
		on(func(w *feedWorld, n *feedInstance) { n.read = w.trail })
	case (cutOff || n.from != w.cursor) && wrong != appendsUnfenced:
		on(lost)
	default:
		on(func(w *feedWorld, n *feedInstance) {
			w.feed += n.read - n.from
			w.cursor, w.taken, n.reading = n.read, false, false
			if wrong == keepsTheMark {
				w.marked = false
			}
		})
	}
}

func feedFault(w feedWorld) error {
	if w.feed != w.cursor {
		return fmt.Errorf("the feed has an event twice: %+v", w)
	}
	found := w.marked || w.taken
	for _, n := range w.instances {
		found = found || n.toMark || n.gone
	}
	if w.cursor < w.trail && !found {
		return fmt.Errorf("no instance will find an event: %+v", w)
	}
	return nil
}

func TestNoOrderOfStepsLosesOrDoublesAnEvent(t *testing.T) {
	t.Parallel()
	wantOnlyDocumented(t, feedWrongs, func(wrong int) (states int, fault error) {
		return explore(feedWorld{}, feedFault, func(w feedWorld, visit func(feedWorld)) { feedSteps(w, wrong, visit) })
	})
}
