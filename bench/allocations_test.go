package bench

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// allocations are those of so many operations, by the function that they are laid to: the innermost one on the stack that
// is not of the standard library. What strings.Join makes is its caller's; what go-redis makes to send a command is
// go-redis's.
type allocations struct {
	operations int
	byFunction map[string]int64
	// shared are those of less than 16 bytes and without pointers that were put beside another one into its block: the
	// runtime counts them, but its profile does not say whose they are.
	shared int64
}

// countAllocations profiles every allocation of some operations.
func countAllocations(operations int, run func(n int) ([]time.Duration, error)) (allocations, error) {
	if _, err := run(operations / 10); err != nil { // what is made once is not per operation
		return allocations{}, err
	}
	usual := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	before, madeBefore := profile(), mallocs()
	_, err := run(operations)
	made, after := mallocs()-madeBefore, profile()
	runtime.MemProfileRate = usual
	counted := allocations{operations: operations, byFunction: map[string]int64{}, shared: made}
	for function, count := range after {
		if count -= before[function]; count > 0 {
			counted.byFunction[function] = count
			counted.shared -= count
		}
	}
	return counted, err
}

// mallocs is how many objects were ever allocated, however small.
func mallocs() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Mallocs)
}

// profile returns the objects that were ever allocated, as far as they were sampled, by function.
func profile() map[string]int64 {
	runtime.GC() // the profile has what was allocated before the last collection but one
	runtime.GC()
	var records []runtime.MemProfileRecord
	for size, ok := runtime.MemProfile(nil, true); !ok; {
		records = make([]runtime.MemProfileRecord, size+100)
		size, ok = runtime.MemProfile(records, true)
		records = records[:min(size, len(records))]
	}
	byFunction := map[string]int64{}
	for _, record := range records {
		byFunction[owner(record.Stack())] += record.AllocObjects
	}
	return byFunction
}

// owner returns the function that an allocation is laid to.
func owner(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if !isStandard(packageOf(frame.Function)) {
			return frame.Function
		}
		if !more {
			return "the standard library alone"
		}
	}
}

// packageOf returns the import path of a function, as in example.com/a/b.(*T).Method.
func packageOf(function string) string {
	base := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[base:], ".")
	return function[:base] + name
}

// isStandard: only the standard library's import paths begin without a domain, but for this module's.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "remit"
}

// isOwn says whether a function is of the service; the bench is not.
func isOwn(function string) bool {
	p := packageOf(function)
	return strings.HasPrefix(p, "remit/") && p != "remit/bench"
}

// own is how many allocations the service's own code makes in an operation.
func (a allocations) own() float64 {
	var sum int64
	for function, count := range a.byFunction {
		if isOwn(function) {
			sum += count
		}
	}
	return a.per(sum)
}

func (a allocations) per(count int64) float64 { return float64(count) / float64(a.operations) }

// String lists the service's functions one by one, and the others by package.
func (a allocations) String() string {
	of := map[string]int64{}
	for function, count := range a.byFunction {
		if !isOwn(function) {
			function = "(" + packageOf(function) + ")"
		}
		of[function] += count
	}
	names := slices.SortedFunc(maps.Keys(of), func(x, y string) int { return cmp.Or(cmp.Compare(of[y], of[x]), cmp.Compare(x, y)) })
	var text strings.Builder
	fmt.Fprintf(&text, "allocations per operation, over %d:\n", a.operations)
	for _, name := range names {
		if per := a.per(of[name]); per >= 0.01 {
			fmt.Fprintf(&text, "%8.2f  %s\n", per, name)
		}
	}
	fmt.Fprintf(&text, "%8.2f  tiny ones, in a block with another\n", a.per(a.shared))
	return text.String()
}
