package main

import (
	"os"
	"strings"
	"testing"
)

// TestThePageMatchesTheRun: no number of docs/performance.md is written by hand.
func TestThePageMatchesTheRun(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fill(string(page), r)
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(page) {
		t.Error("docs/performance.md differs from bench/reported.txt: go run ./bench/report write bench/reported.txt")
	}
	plots, err := draw(r)
	if err != nil {
		t.Fatal(err)
	}
	for name := range plots {
		if _, err := os.Stat("../../docs/performance/" + name); err != nil {
			t.Error(err)
		}
	}
}

func recorded(t *testing.T) *run {
	t.Helper()
	text, err := os.ReadFile("../reported.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseRun(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRunIsReadByNameAndMetric(t *testing.T) {
	t.Parallel()
	r, err := parseRun("machine: 2 cores\nBenchmarkSocket/charge/connections=256-2   40000   9000.5 ops/s   0.5 x-bare\nPASS\n")
	if err != nil || r.about["machine"] != "2 cores" || r.get("Socket/charge/connections=256", "x-bare") != 0.5 || r.err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	r.get("Socket/charge/connections=256", "x-redis")
	if r.err == nil || !strings.Contains(r.err.Error(), "x-redis of Socket/charge") {
		t.Errorf("error for a missing metric: %v", r.err)
	}
	if _, err := parseRun(strings.Repeat("BenchmarkA-2 1 1 ops/s\n", 2)); err == nil {
		t.Error("two runs are accepted as one")
	}
}

func TestAGoalIsMetOnItsOwnSide(t *testing.T) {
	t.Parallel()
	least, most := goal{bound: 0.9}, goal{bound: 5, unit: "ms", atMost: true}
	if !least.met(0.9) || least.met(0.89) || !most.met(5) || most.met(5.01) {
		t.Error("a goal is met on the wrong side of its bound")
	}
	if most.wanted() != "≤ 5 ms" || least.wanted() != "≥ 0.9" || most.shown(4.126) != "4.126 ms" {
		t.Errorf("%q, %q, %q", most.wanted(), least.wanted(), most.shown(4.126))
	}
	for value, want := range map[float64]string{0.1234: "0.123", 12.34: "12.3", 123.4: "123", 1234567: "1,234,567"} {
		if got := digits(value); got != want {
			t.Errorf("%v is shown as %s, want %s", value, got, want)
		}
	}
}

func TestPageWithoutAPlaceIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := fill("nothing here", recorded(t)); err == nil {
		t.Error("a page without markers is accepted")
	}
}
