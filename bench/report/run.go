package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// run is the output of one run of the benchmarks.
type run struct {
	about   map[string]string             // lines such as "machine: 2 cores"
	results map[string]map[string]float64 // by benchmark and metric
	err     error                         // the first missing metric
}

// processors is the suffix that go test adds to a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)

// aboutLine is a configuration line of the benchmark format.
var aboutLine = regexp.MustCompile(`^([a-z]+): *(.+)$`)

// parseRun reads the benchmark format (https://go.dev/design/14313-benchmark-format).
func parseRun(text string) (*run, error) {
	r := &run{about: map[string]string{}, results: map[string]map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if about := aboutLine.FindStringSubmatch(line); about != nil {
			r.about[about[1]] = about[2]
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
		if r.results[name] != nil {
			return nil, fmt.Errorf("%s stands there twice: it is to be one run", name)
		}
		r.results[name] = map[string]float64{}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			r.results[name][fields[i+1]] = value
		}
	}
	return r, nil
}

// has reports whether the run has a metric that not every run has.
func (r *run) has(benchmark, metric string) bool {
	_, found := r.results[benchmark][metric]
	return found
}

// get returns a metric. If it is missing, get sets err, which callers check after reading all metrics.
func (r *run) get(benchmark, metric string) float64 {
	value, found := r.results[benchmark][metric]
	if !found && r.err == nil {
		r.err = fmt.Errorf("the run has no %s of %s", metric, benchmark)
	}
	return value
}
