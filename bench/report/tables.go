package main

import (
	"fmt"
	"strings"
)

// tables are the tables that fill writes, by the name in the page's markers.
var tables = map[string]func(r *run) string{
	"machine":   machineLine,
	"charges":   chargesTable,
	"goals":     goalTable,
	"processor": processorTable,
	"floor":     floorTable,
	"merged":    mergedTable,
	"leases":    leaseTable,
	"socket":    socketTable,
	"process":   processTable,
	"growth":    growthTable,
}

// fill writes each table between its markers, <!-- goals --> and <!-- /goals -->, each on a line of its own.
func fill(page string, r *run) (string, error) {
	for name, table := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("the page has no markers for %s: %s%s", name, begin, end)
		}
		page = before + begin + table(r) + end + after
	}
	return page, r.err
}

func machineLine(r *run) string {
	for _, name := range []string{"machine", "cpu", "redis", "go", "date"} {
		if r.about[name] == "" && r.err == nil {
			r.err = fmt.Errorf("the run does not say its %s", name)
		}
	}
	return fmt.Sprintf("Measured on %s, on a machine with %s (%s); redis-server %s, %s.\n",
		r.about["date"], r.about["machine"], r.about["cpu"], r.about["redis"], r.about["go"])
}

func chargesTable(r *run) string {
	var rows []string
	for _, calls := range []struct{ what, benchmark string }{
		{"256 at once, each connection waits for its response", oneCharge},
		{"one after the other", "Socket/charge/connections=1"},
	} {
		rows = append(rows, row(calls.what, digits(r.get(calls.benchmark, "ops/s")), digits(r.get(calls.benchmark, "p50-us")/1e3),
			digits(r.get(calls.benchmark, "p99-us")/1e3)))
	}
	return table("charges over HTTP | per second | p50 ms | p99 ms", rows)
}

func table(head string, rows []string) string {
	columns := strings.Count(head, "|") + 1
	line := "|" + strings.Repeat(" --- |", columns)
	return "| " + head + " |\n" + line + "\n" + strings.Join(rows, "")
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func goalTable(r *run) string {
	var rows []string
	for _, g := range goals {
		value, verdict := g.value(r), "met"
		if !g.met(value) {
			verdict = "**not met**: " + g.why
		}
		rows = append(rows, row(g.what, g.wanted(), g.shown(value), verdict))
	}
	return table("what | goal | measured | verdict", rows)
}

func socketTable(r *run) string {
	type path struct{ what, benchmark, bare, redis, program string }
	paths := []path{
		{"charge", "Socket/charge/connections=256", "x-bare", "x-redis", "x-redis-benchmark"},
		{"charge, 1 connection", "Socket/charge/connections=1", "x-bare", "x-redis", ""},
		{"verify", "Socket/verify/connections=256", "x-bare", "x-redis", ""},
		{"authorize", "Socket/authorize/connections=256", "x-bare", "x-redis", ""},
		{"get session", "Socket/session/connections=256", "x-bare", "x-redis", ""},
		{"token exchange", "Socket/exchange/connections=256", "x-bare", "x-redis", ""},
		{"refresh", "Socket/refresh/connections=256", "x-bare", "x-redis", ""},
		{"list, page of 20", "Socket/list/connections=256", "x-bare", "", ""},
		{"batch of 100 charges of one session", "Batch/sessions=1", "", "", "x-redis-benchmark"},
		{"batch of 100 charges of ten sessions", "Batch/sessions=10", "", "", "x-redis-benchmark"},
	}
	for _, peer := range r.peers() {
		paths = append(paths, path{peer.what, peer.benchmark, "x-bare", "", ""})
	}
	var rows []string
	for _, path := range paths {
		get := func(metric string) string {
			if metric == "" {
				return ""
			}
			return digits(r.get(path.benchmark, metric))
		}
		rows = append(rows, row(path.what, get("ops/s"), get("p50-us"), get(path.bare), get(path.redis), get(path.program)))
	}
	return table("path | per second | p50 µs | / bare | / go-redis | / redis-benchmark", rows)
}

func processTable(r *run) string {
	var rows []string
	for _, path := range []string{"charge", "verify", "authorize", "session", "exchange", "refresh", "list"} {
		name, beside := "InProcess/"+path, ""
		if path != "list" { // it uses several scripts
			beside = digits(r.get(name, "p50-x-redis"))
		}
		rows = append(rows, row(path, digits(r.get(name, "p50-us")), beside, digits(r.get(name, "own-allocs/op")),
			digits(r.get(name, "tiny-allocs/op")), digits(r.get(name, "allocs/op"))))
	}
	return table("path | p50 µs | / go-redis p50 | own allocations | tiny ones, whose is not known | all allocations", rows)
}

func growthTable(r *run) string {
	var rows []string
	for _, sessions := range growthSteps {
		name := fmt.Sprintf("Growth/charge/sessions=%d", sessions)
		rows = append(rows, row(digits(float64(sessions)), digits(r.get(name, "ops/s")), digits(r.get(name, "x-1000-sessions"))))
	}
	charges := table("live sessions | charges per second | / the same with 1,000", rows)
	rows = nil
	for _, limit := range []int{50, 200} {
		name := fmt.Sprintf("Growth/list/limit=%d", limit)
		rows = append(rows, row(fmt.Sprint(limit), digits(r.get(name, "p50-ms")), digits(r.get(name, "p99-ms"))))
	}
	return charges + "\n" + table("page of 1,000,000 sessions, entries | p50 ms | p99 ms", rows)
}

var growthSteps = []int{10_000, 100_000, 1_000_000}
