package main

import (
	"os"
	"strings"
	"testing"

	"remit/test/suite"
)

// TestThePageMatchesTheRun: no number of docs/performance.md is written by hand.
func TestThePageMatchesTheRun(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	page := string(suite.Must(os.ReadFile("../../docs/performance.md"))(t))
	if suite.Must(fill(page, r))(t) != page {
		t.Error("docs/performance.md differs from bench/reported.txt: go run ./bench/report write bench/reported.txt")
	}
	for name := range suite.Must(draw(r))(t) {
		suite.Must(os.Stat("../../docs/performance/" + name))(t)
	}
	if _, err := fill("nothing here", r); err == nil {
		t.Error("a page without markers is accepted")
	}
}

func recorded(t *testing.T) *run {
	t.Helper()
	text := suite.Must(os.ReadFile("../reported.txt"))(t)
	return suite.Must(parseRun(string(text)))(t)
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
	if bytes := (goal{bound: 196, unit: "B", atMost: true}); !bytes.met(196.4) || bytes.met(196.6) {
		t.Error("a goal of whole bytes is not judged by the number that the page shows")
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

func TestAGoalThatIsNotMetSaysWhy(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	for _, g := range goals {
		if g.why == "" {
			t.Errorf("%s does not say what stands between the value and the bound", g.what)
		}
		r.results[g.benchmark][g.metric] = g.bound / 2
		if g.atMost {
			r.results[g.benchmark][g.metric] = 2*g.bound + 1
		}
	}
	verdicts := goalTable(r)
	for _, g := range goals {
		if !strings.Contains(verdicts, "**not met**: "+g.why) {
			t.Errorf("%s is not met, and the page does not say why:\n%s", g.what, verdicts)
		}
	}
}

// TestPeersHaveRowsOnlyWhenTheyWereMeasured: most runs have none.
func TestPeersHaveRowsOnlyWhenTheyWereMeasured(t *testing.T) {
	t.Parallel()
	r := recorded(t)
	for _, table := range []string{processorTable(r), socketTable(r)} {
		if strings.Contains(table, "limiter") {
			t.Fatalf("a peer that was not measured:\n%s", table)
		}
	}
	r.results["Peer/limiter"] = map[string]float64{
		"ops/s": 9876, "p50-us": 30, "x-bare": 0.2, "client-us/op": 11, "service-us/op": 22, "redis-us/op": 33, "service-x-bare": 5,
	}
	for table, want := range map[string]string{
		processorTable(r): "| limiter | 11.0 | 22.0 | 33.0 | 66.0 | 5.000 |\n",
		socketTable(r):    "| limiter | 9876 | 30.0 | 0.200 |  |  |\n",
	} {
		if !strings.Contains(table, want) || r.err != nil {
			t.Errorf("want %q, %v:\n%s", want, r.err, table)
		}
	}
}

func TestMergedTableNamesOnlyPathsThatWereMerged(t *testing.T) {
	t.Parallel()
	r := &run{results: map[string]map[string]float64{
		oneCharge:                        {"calls/merged-script": 7.5, "merged-%": 93.4},
		"Socket/list/connections=256":    {"calls/merged-script": 0, "merged-%": 0},
		"Socket/refresh/connections=256": {},
	}}
	if got, want := mergedTable(r), "| charge | 7.500 | 93.4 % |\n"; !strings.HasSuffix(got, want) || strings.Contains(got, "list") || r.err != nil {
		t.Errorf("%v:\n%s", r.err, got)
	}
	if got := mergedTable(&run{}); strings.Contains(got, "|") {
		t.Errorf("nothing was merged:\n%s", got)
	}
}

// TestPartsOfAChargeAddUp: the page says of each microsecond where it goes.
func TestPartsOfAChargeAddUp(t *testing.T) {
	t.Parallel()
	r := &run{results: map[string]map[string]float64{oneCharge: {
		"client-us/op": 15, "service-us/op": 45, "redis-us/op": 20, "bare-client-us/op": 12, "bare-service-us/op": 16, "empty-script-redis-us/op": 4,
	}}}
	table := floorTable(r)
	for _, part := range []string{"| 28.0 | 35 % |", "| 3.000 | 4 % |", "| 29.0 | 36 % |", "| 4.000 | 5 % |", "| 16.0 | 20 % |", "would be 0.875"} {
		if !strings.Contains(table, part) || r.err != nil {
			t.Errorf("no %s, %v:\n%s", part, r.err, table)
		}
	}
}
