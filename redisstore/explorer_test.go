package redisstore

// explorer visits every state of a world that a search reaches, each once.
type explorer[W comparable] struct {
	seen map[W]struct{}
	open []W
}

func newExplorer[W comparable](start W) *explorer[W] {
	e := &explorer[W]{seen: map[W]struct{}{}}
	e.visit(start)
	return e
}

// visit adds a state that follows from another one.
func (e *explorer[W]) visit(w W) {
	if _, known := e.seen[w]; !known {
		e.seen[w] = struct{}{}
		e.open = append(e.open, w)
	}
}

// run returns the first fault that check finds in a state. goOn visits the states that follow from one.
func (e *explorer[W]) run(check func(W) error, goOn func(W)) error {
	for len(e.open) > 0 {
		w := e.open[len(e.open)-1]
		e.open = e.open[:len(e.open)-1]
		if err := check(w); err != nil {
			return err
		}
		goOn(w)
	}
	return nil
}
