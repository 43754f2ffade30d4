package redisstore

type searchMove = func(*searchWorld, *[2]int8) int8

func creating(x, amount int8, wrong int) searchProcess {
	aside := func(w *searchWorld, local *[2]int8) int8 {
		if !w.setAside(x, amount, wrong) {
			return stop
		}
		local[0] = w.nodes[x].part
		return 1
	}
	create := func(w *searchWorld, local *[2]int8) int8 {
		w.create(x, amount, local[0])
		return stop
	}
	if wrong == createsFirst {
		return searchProcess{"create", []searchMove{
			func(w *searchWorld, _ *[2]int8) int8 { w.create(x, amount, partAside); return 1 },
			func(w *searchWorld, _ *[2]int8) int8 { w.setAside(x, amount, wrong); return stop },
		}}
	}
	return searchProcess{"create", []searchMove{aside, create}}
}

// refused sets a part aside for a session that its own cell refuses, and gives the part back.
func refused(x, amount int8, wrong int) searchProcess {
	back := settling(x, asDocumented).steps
	steps := []searchMove{func(w *searchWorld, _ *[2]int8) int8 {
		if !w.setAside(x, amount, wrong) {
			return stop
		}
		if wrong == takesBackAtOnce {
			return 2
		}
		return 1
	}}
	for _, step := range back {
		steps = append(steps, func(w *searchWorld, local *[2]int8) int8 {
			if next := step(w, local); next != stop {
				return next + 1
			}
			return stop
		})
	}
	return searchProcess{"create what is refused", steps}
}

// repeated creates the session of a part that another request with the same idempotency key has set aside.
func repeated(x, amount int8) searchProcess {
	return searchProcess{"repeat", []searchMove{func(w *searchWorld, _ *[2]int8) int8 {
		if w.nodes[x].part == partNone {
			return stop
		}
		return 1
	}, func(w *searchWorld, _ *[2]int8) int8 {
		w.create(x, amount, partAside)
		return stop
	}}}
}

// settling closes a session and brings its part back.
func settling(x int8, wrong int) searchProcess {
	closing := func(w *searchWorld, local *[2]int8) int8 {
		if w.nodes[x].part == partNone {
			return stop
		}
		if w.nodes[x].part == partTaken && wrong != takesTwice {
			return 2
		}
		used, closed := w.closeUsage(x, wrong)
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
		if x == 1 && wrong != tiesWhatWasObserved {
			local[0] = max(local[0], w.nodes[x].v+w.nodes[x].held)
		}
		return 1
	}
	raise := func(w *searchWorld, local *[2]int8) int8 {
		if x == 1 && w.unbounded && w.nodes[x].part == partNone {
			local[0] = ungranted
		} else if !w.raise(x, local[0], wrong) {
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

// setting sets the budget, or deletes it when limit is negative.
func setting(limit int8, wrong int) searchProcess {
	return searchProcess{"set the budget", []searchMove{func(w *searchWorld, _ *[2]int8) int8 {
		b := &w.nodes[0]
		switch {
		case limit < 0:
			w.unbounded = true
			w.turn(asDocumented)
			if wrong == deletesWhatIsReserved {
				b.v = 0
			}
		case b.v <= limit || wrong == setsBelowUsage:
			b.limit, w.unbounded = limit, false
		}
		return stop
	}}}
}
