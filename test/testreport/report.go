package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// slowestShown is how many of the slowest tests a report ends with.
const slowestShown = 10

// event is one line of go test -json (go doc test2json), or of a build that failed (go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build, in place of Package
	Test       string // empty in what concerns the whole package
	Elapsed    float64
	Output     string
}

// test names a test or subtest, or with an empty name the package itself.
type test struct{ pkg, name string }

type timed struct {
	test
	seconds float64
}

// report collects the events of one or more runs of go test.
type report struct {
	to      io.Writer
	output  map[test][]string // of what has not passed yet
	parents map[test]bool     // tests that have subtests
	ended   []timed
	skipped []test
	passed  int // packages
	failed  bool
}

func newReport(to io.Writer) *report {
	return &report{to: to, output: map[test][]string{}, parents: map[test]bool{}}
}

// read reads events up to the end of r. It prints any other line as it is, because go
// reports in such lines what it cannot run.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) == nil:
			r.add(e)
		default:
			fmt.Fprintf(r.to, "%s", line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.to, e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		r.output[t] = append(r.output[t], e.Output)
	case "run":
		if slash := strings.LastIndexByte(e.Test, '/'); slash >= 0 {
			r.parents[test{e.Package, e.Test[:slash]}] = true
		}
	case "pass", "fail", "skip":
		r.end(t, e)
	}
}

// end takes the outcome of a test or of a package, prints what a failure says, and forgets the rest.
func (r *report) end(t test, e event) {
	defer delete(r.output, t)
	if t.name == "" {
		r.endPackage(t, e)
		return
	}
	r.ended = append(r.ended, timed{t, e.Elapsed})
	switch e.Action {
	case "skip":
		r.skipped = append(r.skipped, t)
	case "fail":
		r.failed = true
		r.print(t)
	}
}

func (r *report) endPackage(t test, e event) {
	switch e.Action {
	case "fail":
		r.failed = true
		r.printUnfinished(t.pkg)
		fmt.Fprintf(r.to, "FAIL  %6.1f s  %s\n", e.Elapsed, t.pkg)
	case "pass":
		r.passed++
		fmt.Fprintf(r.to, "ok    %6.1f s  %s\n", e.Elapsed, t.pkg)
	}
	// A package is skipped when it has no tests.
}

// printUnfinished prints what tests printed that have no outcome, because the process ended before them, and then what the
// package itself printed.
func (r *report) printUnfinished(pkg string) {
	var unfinished []test
	for t := range r.output {
		if t.pkg == pkg {
			unfinished = append(unfinished, t)
		}
	}
	slices.SortFunc(unfinished, func(a, b test) int { return -strings.Compare(a.name, b.name) }) // the package is last
	for _, t := range unfinished {
		r.print(t)
		delete(r.output, t)
	}
}

func (r *report) print(t test) {
	for _, line := range r.output[t] {
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "redis: ") {
			fmt.Fprint(r.to, line)
		}
	}
}

// finish prints the slowest tests and those that skipped, and says whether all is well.
func (r *report) finish() bool {
	fmt.Fprintf(r.to, "\nthe %d slowest tests\n", slowestShown)
	for _, slow := range r.slowest(slowestShown) {
		fmt.Fprintf(r.to, "  %6.1f s  %s %s\n", slow.seconds, slow.pkg, slow.name)
	}
	for _, t := range r.skipped {
		fmt.Fprintf(r.to, "SKIP  %s %s: a test that skips proves nothing\n", t.pkg, t.name)
	}
	if r.passed == 0 && !r.failed {
		fmt.Fprintln(r.to, "no package was tested")
		return false
	}
	return !r.failed && len(r.skipped) == 0
}

// slowest returns the tests without subtests that took longest: a test with subtests takes the sum of theirs.
func (r *report) slowest(count int) []timed {
	leaves := slices.DeleteFunc(slices.Clone(r.ended), func(t timed) bool { return r.parents[t.test] })
	slices.SortFunc(leaves, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	return leaves[:min(count, len(leaves))]
}
