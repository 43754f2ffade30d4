package main

import (
	"maps"
	"slices"
	"sync"
)

// keptViolations is how many violations are printed. All are counted.
const keptViolations = 20

// audit collects violations. Its methods are safe for concurrent use; read its fields only after the workers have ended.
type audit struct {
	mu     sync.Mutex
	kept   []violation // the first
	counts map[rule]int64
}

// add adds the violations of one check.
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

// clean reports whether everything was checked and no violation found.
func (a *audit) clean() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.counts) == 0
}

// total is the number of violations, including what could not be checked.
func (a *audit) total() int64 {
	var n int64
	for _, count := range a.counts {
		n += count
	}
	return n
}

// broken returns the broken rules in alphabetical order.
func (a *audit) broken() []rule { return slices.Sorted(maps.Keys(a.counts)) }
