package redisstore

import (
	"fmt"
	"testing"
)

// The search runs what stores, notes, claims and records what is due (docs/decisions/0064-time.md) through every order of the steps of two
// leaders of a feed and two recorders, which end at any step.

// dueWorld is a state of the search. Times are 1 to 3, 0 is none; something is due when the clock has reached its time.
type dueWorld struct {
	clock   int8
	entries [4]int8 // by their time
	added   int8
	owes    int8 // from when something is due that the queue does not say, in the feed's head
	queue   int8 // when the organization is due, claimed while it is claimed
	version int8
	leaders [2]dueLeader
	workers [2]dueWorker
}

// claimed is the queue's time of an organization that is due again when a claim ends, or before, at the time of a note.
const claimed = 9

// dueLeader is a leader that has yet to note a time; 0 for none.
type dueLeader struct{ notes int8 }

// dueWorker is a recorder that has claimed the organization, and then knows what is due next.
type dueWorker struct {
	version int8 // 0 for no claim
	knows   bool
	next    int8
}

// Ways to get the protocol wrong, each of which the search finds.
const (
	owesNothing      = iota + 1 // the leader stores the entries, and then notes them, and no other knows if it does not
	finishesAnyway              // whatever was noted since the claim
	notesOnlyEarlier            // a time that the queue has counts as no note
	removesClaimed              // from the queue, until it is done
	dueWrongs
)

const mostAdded = 3

func dueSteps(w dueWorld, wrong int, visit func(dueWorld)) {
	do := func(change func(*dueWorld)) {
		after := w
		change(&after)
		visit(after)
	}
	if w.clock < 3 {
		do(func(w *dueWorld) { w.clock++ })
	}
	if w.queue == claimed {
		do(func(w *dueWorld) { w.queue = max(w.clock, 1) }) // the claim ends
	}
	for i := range w.leaders {
		for at := w.clock + 1; at <= 3 && w.added < mostAdded && w.leaders[i].notes == 0; at++ {
			do(func(w *dueWorld) {
				first := w.first()
				w.entries[at], w.added = w.entries[at]+1, w.added+1
				if first == 0 || at < first {
					w.leaders[i].notes = at
					if wrong != owesNothing {
						w.owes = at
					}
				}
			})
		}
		if w.owes != 0 && w.leaders[i].notes == 0 {
			do(func(w *dueWorld) { w.leaders[i].notes = w.owes }) // it leads now
		}
		if at := w.leaders[i].notes; at != 0 {
			do(func(w *dueWorld) { w.leaders[i].notes = 0 }) // it ends
			do(func(w *dueWorld) {
				earlier := w.queue == 0 || at < w.queue && w.queue != claimed
				if earlier || wrong != notesOnlyEarlier {
					w.version++
				}
				if earlier {
					w.queue = at
				}
				w.leaders[i].notes = 0
				if w.owes == at {
					w.owes = 0
				}
			})
		}
	}
	for i := range w.workers {
		workerSteps(w, i, wrong, do)
	}
}

func workerSteps(w dueWorld, i, wrong int, do func(func(*dueWorld))) {
	worker := w.workers[i]
	if worker != (dueWorker{}) {
		do(func(w *dueWorld) { w.workers[i] = dueWorker{} }) // it ends
	}
	switch {
	case worker == (dueWorker{}) && w.queue != 0 && w.queue <= w.clock:
		do(func(w *dueWorld) {
			w.workers[i].version = w.version
			if w.queue = claimed; wrong == removesClaimed {
				w.queue = 0
			}
		})
	case worker.version != 0 && !worker.knows:
		do(func(w *dueWorld) {
			for at := int8(1); at <= w.clock; at++ {
				w.entries[at] = 0
			}
			w.workers[i].knows, w.workers[i].next = true, w.first()
		})
	case worker.knows && worker.version != w.version && wrong != finishesAnyway:
		do(func(w *dueWorld) { w.queue, w.workers[i] = max(w.clock, 1), dueWorker{} })
	case worker.knows:
		do(func(w *dueWorld) { w.queue, w.workers[i] = worker.next, dueWorker{} })
	}
}

// first returns the first time at which something is due, 0 for none.
func (w *dueWorld) first() int8 {
	for at, entries := range w.entries {
		if entries > 0 {
			return int8(at)
		}
	}
	return 0
}

// dueFault returns what is wrong with a state if all that is under way ends now.
func dueFault(w dueWorld) error {
	first := w.first()
	switch {
	case first == 0 || w.queue == claimed || w.queue != 0 && w.queue <= first || w.owes != 0 && w.owes <= first:
		return nil
	case w.queue != 0 && w.queue <= w.clock: // it is late, and comes
		return nil
	}
	return fmt.Errorf("nothing tells of what is due at %d: %+v", first, w)
}

func TestNoOrderOfStepsForgetsWhatIsDue(t *testing.T) {
	t.Parallel()
	wantOnlyDocumented(t, dueWrongs, func(wrong int) (states int, fault error) {
		return explore(dueWorld{version: 1}, dueFault, func(w dueWorld, visit func(dueWorld)) { dueSteps(w, wrong, visit) })
	})
}
