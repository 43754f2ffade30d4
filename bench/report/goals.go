package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"remit/internal/chart"
)

// goal is the bound that a metric should meet.
type goal struct {
	what      string
	benchmark string
	metric    string
	bound     float64
	unit      string // "" for ratios
	percent   bool   // the metric is a ratio, and the bound in percent
	atMost    bool   // else at least
	why       string // what stands between the value and the bound; the page says it where the goal is not met
}

const (
	oneCharge  = "Socket/charge/connections=256"
	leasedInGo = "Lease/go"

	twoCores = "the service, Redis and the clients share the cores, so this ratio is that of all processor time: see the next tables"
)

var goals = []goal{
	{what: "Redis processor per charge / per empty script", benchmark: oneCharge, metric: "redis-x-empty-script", bound: 4, atMost: true,
		why: "a charge reads and writes its session, and its pipelines are shorter than the 64 calls of redis-benchmark"},
	{what: "service processor per charge / bare handler's", benchmark: oneCharge, metric: "service-x-bare", bound: 2.2, atMost: true,
		why: "the token, the body, the script's reply and a second socket, to Redis, come on top of what the bare handler does"},
	{what: "charge / bare", benchmark: oneCharge, metric: "x-bare", bound: 0.5, why: twoCores},
	{what: "verify / bare", benchmark: "Socket/verify/connections=256", metric: "x-bare", bound: 0.65, why: twoCores},
	{what: "get session / bare", benchmark: "Socket/session/connections=256", metric: "x-bare", bound: 0.5, why: twoCores},
	{what: "refresh / bare", benchmark: "Socket/refresh/connections=256", metric: "x-bare", bound: 0.25,
		why: "the service signs an access token and a refresh token, and Redis writes the family"},
	{what: "list, page of 20 / bare", benchmark: "Socket/list/connections=256", metric: "x-bare", bound: 0.2,
		why: "a page reads 20 sessions from Redis, after the index that names them"},
	{what: "token exchange / bare", benchmark: "Socket/exchange/connections=256", metric: "x-bare", bound: 0.25,
		why: "the service signs an access token and a refresh token, and Redis writes a new family and its index entry"},
	{what: "charge / redis-benchmark -P 1", benchmark: oneCharge, metric: "x-redis-benchmark", bound: 0.9,
		why: "redis-benchmark has no service between itself and Redis, and is written in C"},
	{what: "batch of 100 / redis-benchmark -P 64", benchmark: "Batch/sessions=1", metric: "x-redis-benchmark", bound: 0.6, why: twoCores},
	{what: "charge, 1,000,000 sessions / 1,000", benchmark: "Growth/charge/sessions=1000000", metric: "x-1000-sessions", bound: 0.9,
		why: "random sessions of a million miss the processor's caches"},
	{what: "charge p50 / go-redis p50, 1 connection", benchmark: "OneConnection/charge", metric: "p50-x-redis", bound: 1.25, atMost: true,
		why: "the client's socket comes on top: a charge takes as long as a bare response and the script by go-redis together"},
	{what: "p99 of charges, twice the capacity / half", benchmark: "Held/overload", metric: "p99-x-normal", bound: 10, atMost: true,
		why: "since due: the clients have no free connection; refusals for all would take most of the core (reliability.md)"},
	{what: "leased charges in the Go SDK, one core", benchmark: leasedInGo, metric: "ops/s", bound: 5_000_000, unit: "/s",
		why: "each charge takes its part of the lease by an atomic operation and reads the clock"},
	{what: "allocations per leased charge", benchmark: leasedInGo, metric: "allocs/op", bound: 0, atMost: true,
		why: "renewals in the background are counted too"},
	{what: "p99 of a leased charge", benchmark: leasedInGo, metric: "p99-ns", bound: 1000, unit: "ns", atMost: true,
		why: "on one core, a charge also waits while the runtime runs renewals"},
	{what: "Redis processor per leased charge / per charge", benchmark: leasedInGo, metric: "redis-x-charge", percent: true, bound: 1, unit: "%", atMost: true,
		why: "about one settlement a second is left, shared by few charges"},
	{what: "leased charges in the TypeScript SDK", benchmark: "Lease/typescript", metric: "ops/s", bound: 500_000, unit: "/s",
		why: "amounts are bigints, which JavaScript allocates"},
	{what: "leased charges in the Python SDK", benchmark: "Lease/python", metric: "ops/s", bound: 200_000, unit: "/s",
		why: "Python interprets each step of a charge, and takes a lock"},
	{what: "own allocations per charge", benchmark: "InProcess/charge", metric: "own-allocs/op", bound: 5, atMost: true,
		why: "the benchmark lists them by function with -v"},
	{what: "own allocations per verify", benchmark: "InProcess/verify", metric: "own-allocs/op", bound: 2, atMost: true,
		why: "the benchmark lists them by function with -v"},
	{what: "Redis memory per live session", benchmark: "Memory/session", metric: "B/session", bound: 400, unit: "B", atMost: true,
		why: "three index entries and what Redis keeps for any key come on top of the session's fields"},
	{what: "Redis memory per refresh family", benchmark: "Memory/family", metric: "B/family", bound: 196, unit: "B", atMost: true,
		why: "an index entry and what Redis keeps for any key come on top of the family's fields"},
	{what: "resident memory, 10,000 idle connections", benchmark: "Resident", metric: "RSS-MiB", bound: 150, unit: "MiB", atMost: true,
		why: "each connection keeps its goroutine and its state"},
	{what: "p99 of a page of 50, 1,000,000 sessions", benchmark: "Growth/list/limit=50", metric: "p99-ms", bound: 5, unit: "ms", atMost: true,
		why: "pages of random positions miss the processor's caches"},
}

// value returns what the run measured, in the unit of the bound.
func (g goal) value(r *run) float64 {
	value := r.get(g.benchmark, g.metric)
	if g.percent {
		value *= 100
	}
	return value
}

// met judges the number that the page shows.
func (g goal) met(value float64) bool {
	value, _ = strconv.ParseFloat(strings.ReplaceAll(digits(value), ",", ""), 64) // cannot fail: digits wrote it
	if g.atMost {
		return value <= g.bound
	}
	return value >= g.bound
}

// wanted returns the goal in words: at least 0.9, at most 5 ms.
func (g goal) wanted() string {
	sense := "≥ "
	if g.atMost {
		sense = "≤ "
	}
	number := strconv.FormatFloat(g.bound, 'f', -1, 64)
	if g.bound >= withCommas {
		number = digits(g.bound)
	}
	return sense + withUnit(number, g.unit)
}

// shown returns a value with its unit.
func (g goal) shown(value float64) string { return withUnit(digits(value), g.unit) }

func withUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

const withCommas = 10_000

// digits formats a number with three or four significant digits: without decimals from 100, with commas from 10,000.
func digits(value float64) string {
	switch {
	case value >= withCommas:
		return chart.Count.Text(int64(math.RoundToEven(value)))
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.3f", value)
}
