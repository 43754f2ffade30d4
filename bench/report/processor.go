package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// measured is a path whose processor time the page shows.
type measured struct{ what, benchmark string }

var measuredPaths = []measured{
	{"charge", oneCharge},
	{"charge, 1 connection", "Socket/charge/connections=1"},
	{"verify", "Socket/verify/connections=256"},
	{"authorize", "Socket/authorize/connections=256"},
	{"get session", "Socket/session/connections=256"},
	{"token exchange", "Socket/exchange/connections=256"},
	{"refresh", "Socket/refresh/connections=256"},
	{"list, page of 20", "Socket/list/connections=256"},
	{"a charge of a batch of 100, one session", "Batch/sessions=1"},
	{"a charge of a batch of 100, ten sessions", "Batch/sessions=10"},
}

// usage is processor time of one request in microseconds.
type usage struct{ client, service, redis float64 }

func (u usage) all() float64 { return u.client + u.service + u.redis }

func (r *run) usage(benchmark string) usage {
	return usage{r.get(benchmark, "client-us/op"), r.get(benchmark, "service-us/op"), r.get(benchmark, "redis-us/op")}
}

// bareUsage returns what the bare handler uses whose responses have the size of the path's.
func (r *run) bareUsage(benchmark string) usage {
	return usage{client: r.get(benchmark, "bare-client-us/op"), service: r.get(benchmark, "bare-service-us/op")}
}

// peers returns the other programs, which only a run with PEERS has.
func (r *run) peers() (found []measured) {
	for _, name := range slices.Sorted(maps.Keys(r.results)) {
		if peer, is := strings.CutPrefix(name, "Peer/"); is {
			found = append(found, measured{peer, name})
		}
	}
	return found
}

func (r *run) pathsAndPeers() []measured { return slices.Concat(measuredPaths, r.peers()) }

func processorTable(r *run) string {
	floor := r.bareUsage(oneCharge)
	rows := []string{row("bare", digits(floor.client), digits(floor.service), "", digits(floor.all()), "")}
	for _, path := range r.pathsAndPeers() {
		used, beside := r.usage(path.benchmark), ""
		if !strings.HasPrefix(path.benchmark, "Batch/") { // a bare handler has no batches
			beside = digits(r.get(path.benchmark, "service-x-bare"))
		}
		rows = append(rows, row(path.what, digits(used.client), digits(used.service), digits(used.redis), digits(used.all()), beside))
	}
	return table("path | client µs | service µs | Redis µs | all µs | service / bare", rows)
}

// floorTable takes a charge apart: what the bare handler pays too, and what comes on top in each process.
func floorTable(r *run) string {
	charge, floor := r.usage(oneCharge), r.bareUsage(oneCharge)
	empty := r.get(oneCharge, "empty-script-redis-us/op")
	var rows []string
	for _, part := range []struct {
		what string
		time float64
	}{
		{"client and service: the client's socket and HTTP, which the bare handler pays too", floor.all()},
		{"client: the rest, a longer request", charge.client - floor.client},
		{"service: the rest, which is credential, body, checks, the call to Redis and the response", charge.service - floor.service},
		{"Redis: a script that does nothing, 64 in a pipeline", empty},
		{"Redis: the rest, which is the script's own commands, the service's socket and the append-only file", charge.redis - empty},
	} {
		rows = append(rows, row(part.what, digits(part.time), fmt.Sprintf("%.0f %%", 100*part.time/charge.all())))
	}
	return table("part of a charge | µs | of all", rows) + fmt.Sprintf(`
If the service added nothing and Redis only ran an empty script, charge / bare would be %s. It is 0.5 when the other rows
together take as much as the first.
`, digits(floor.all()/(floor.all()+empty)))
}

// mergedTable shows how many calls Redis gets as one script.
func mergedTable(r *run) string {
	var rows []string
	for _, path := range measuredPaths {
		if r.has(path.benchmark, "calls/merged-script") && r.get(path.benchmark, "merged-%") > 0 {
			rows = append(rows, row(path.what, digits(r.get(path.benchmark, "calls/merged-script")), digits(r.get(path.benchmark, "merged-%"))+" %"))
		}
	}
	if rows == nil {
		return "In this run the service merged no calls.\n"
	}
	return table("path | calls in a merged script | calls that were merged", rows)
}
