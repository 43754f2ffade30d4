package bench

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// allocations counts the allocations of a number of operations by function: the innermost on the stack that is not in the
// standard library. Allocations in strings.Join count for its caller, those of go-redis for go-redis.
type allocations struct {
	operations int
	byFunction map[string]int64
	// shared are allocations of less than 16 bytes without pointers that share a block with another one. The runtime counts
	// them, but its profile does not attribute them.
	shared int64
}

// countAllocations profiles every allocation of some operations.
func countAllocations(tb testing.TB, operations int, run func(n int) ([]time.Duration, error)) allocations {
	tb.Helper()
	must(run(operations / 10))(tb) // warm up, so that initial allocations are not counted
	defer func(usual int) { runtime.MemProfileRate = usual }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	before, madeBefore := profile(), mallocs()
	must(run(operations))(tb)
	made, after := mallocs()-madeBefore, profile()
	counted := allocations{operations: operations, byFunction: map[string]int64{}, shared: made}
	for function, count := range after {
		if count -= before[function]; count > 0 {
			counted.byFunction[function] = count
			counted.shared -= count
		}
	}
	return counted
}

// mallocs returns how many objects the process has allocated, of any size.
func mallocs() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Mallocs)
}

// profile returns the sampled allocations of the process by function.
func profile() map[string]int64 {
	runtime.GC() // the profile covers allocations before the second-last collection
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

// owner returns the function that an allocation counts for.
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

// isStandard recognises the standard library: its import paths, and those of this module, begin without a domain.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "remit"
}

// isOwn says whether a function is in the service, not in the bench.
func isOwn(function string) bool {
	p := packageOf(function)
	return strings.HasPrefix(p, "remit/") && p != "remit/bench"
}

// own returns how many allocations the service's own code makes per operation.
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
