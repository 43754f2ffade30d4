package redisstore

import "testing"

// The searches run protocols in a few variables, and check every state. What the scripts and the service do in one step is a step there.

// explore visits every state that follows from start. It returns how many there are, and the first fault that check finds in one.
// goOn visits the states that follow from one.
func explore[W comparable](start W, check func(W) error, goOn func(w W, visit func(W))) (states int, fault error) {
	seen, open := map[W]struct{}{start: {}}, []W{start}
	visit := func(w W) {
		if _, known := seen[w]; !known {
			seen[w] = struct{}{}
			open = append(open, w)
		}
	}
	for len(open) > 0 {
		w := open[len(open)-1]
		open = open[:len(open)-1]
		if err := check(w); err != nil {
			return len(seen), err
		}
		goOn(w, visit)
	}
	return len(seen), nil
}

// wantOnlyDocumented checks that a search finds no fault in the protocol as it is documented, and one in each of the wrong ones.
func wantOnlyDocumented(t *testing.T, wrongs int, search func(wrong int) (states int, fault error)) {
	t.Helper()
	states, fault := search(asDocumented)
	if fault != nil || states < 10_000 {
		t.Errorf("%d states: %v", states, fault)
	}
	for wrong := asDocumented + 1; wrong < wrongs; wrong++ {
		if states, fault := search(wrong); fault == nil {
			t.Errorf("the search finds no fault in protocol %d after %d states", wrong, states)
		}
	}
}
