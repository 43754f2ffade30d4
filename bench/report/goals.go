package main

import (
	"fmt"
	"strconv"
)

// goal is the bound that a metric should meet.
type goal struct {
	what      string
	benchmark string
	metric    string
	bound     float64
	unit      string // "" for ratios
	atMost    bool   // else at least
}

var goals = []goal{
	{what: "charge / bare", benchmark: "Socket/charge/connections=256", metric: "x-bare", bound: 0.55},
	{what: "charge / redis-benchmark -P 1", benchmark: "Socket/charge/connections=256", metric: "x-redis-benchmark", bound: 0.9},
	{what: "verify / bare", benchmark: "Socket/verify/connections=256", metric: "x-bare", bound: 0.65},
	{what: "get session / bare", benchmark: "Socket/session/connections=256", metric: "x-bare", bound: 0.5},
	{what: "token exchange / bare", benchmark: "Socket/exchange/connections=256", metric: "x-bare", bound: 0.2},
	{what: "refresh / bare", benchmark: "Socket/refresh/connections=256", metric: "x-bare", bound: 0.2},
	{what: "batch of 100 / redis-benchmark -P 64", benchmark: "Batch/sessions=1", metric: "x-redis-benchmark", bound: 0.6},
	{what: "charge, 1,000,000 sessions / 1,000", benchmark: "Growth/charge/sessions=1000000", metric: "x-1000-sessions", bound: 0.9},
	{what: "charge p50 / go-redis p50, 1 connection", benchmark: "Socket/charge/connections=1", metric: "p50-x-redis", bound: 1.4, atMost: true},
	{what: "own allocations per charge", benchmark: "InProcess/charge", metric: "own-allocs/op", bound: 5, atMost: true},
	{what: "own allocations per verify", benchmark: "InProcess/verify", metric: "own-allocs/op", bound: 2, atMost: true},
	{what: "Redis memory per live session", benchmark: "Memory/session", metric: "B/session", bound: 500, unit: "B", atMost: true},
	{what: "Redis memory per refresh family", benchmark: "Memory/family", metric: "B/family", bound: 200, unit: "B", atMost: true},
	{what: "resident memory, 10,000 idle connections", benchmark: "Resident", metric: "RSS-MiB", bound: 150, unit: "MiB", atMost: true},
	{what: "p99 of a page of 50, 1,000,000 sessions", benchmark: "Growth/list/limit=50", metric: "p99-ms", bound: 5, unit: "ms", atMost: true},
}

func (g goal) met(value float64) bool {
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
	return sense + withUnit(strconv.FormatFloat(g.bound, 'f', -1, 64), g.unit)
}

// shown returns a value with its unit.
func (g goal) shown(value float64) string { return withUnit(digits(value), g.unit) }

func withUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// digits formats a number with three or four significant digits: without decimals from 100, with commas from 10,000.
func digits(value float64) string {
	switch {
	case value >= 10_000:
		whole := strconv.FormatFloat(value, 'f', 0, 64)
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
		return whole
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.3f", value)
}
