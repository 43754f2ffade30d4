package main

import (
	"maps"
	"slices"
	"sync"
)

// keptViolations is how many violations are kept to be printed; all are counted.
const keptViolations = 20

// audit collects what the checks found. Safe for use by many workers; its fields are for when they are done.
type audit struct {
	mu     sync.Mutex
	kept   []violation // the first
	counts map[rule]int64
}

// add takes over what one check found.
func (a *audit) add(list []violation) {
	if len(list) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[rule]int64{}
	}
	for _, v := range list {
		a.counts[v.rule]++
		if len(a.kept) < keptViolations {
			a.kept = append(a.kept, v)
		}
	}
}

// clean reports whether everything was checked and nothing found.
func (a *audit) clean() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.counts) == 0
}

// total is how much was found, including what could not be checked.
func (a *audit) total() int64 {
	var n int64
	for _, count := range a.counts {
		n += count
	}
	return n
}

// broken are the rules that were, in alphabetical order.
func (a *audit) broken() []rule { return slices.Sorted(maps.Keys(a.counts)) }
