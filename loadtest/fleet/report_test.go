package fleet

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// sample returns a fleet with a few measurements and violations.
func sample() *fleet {
	f, _ := newFleet(config{scenario: steady, agents: 1, sessions: 1, rate: 10, duration: time.Second, addr: "http://127.0.0.1:1"})
	f.sessions[0] = &session{}
	f.unsent = 3
	due := time.Unix(1000, 0)
	for i, r := range []reply{done(), done(), overLimit(limitValue), {err: io.EOF}} {
		f.stats.record(opAction, due, due.Add(time.Duration(i+1)*time.Millisecond), r)
		f.stats.recordArrival(due, due.Add(time.Duration(i+1)*time.Millisecond), r.outcome())
	}
	f.stats.recordLag(40 * time.Millisecond)
	return f
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// words joins the words of each line by one space, so that tests do not depend on column widths.
func words(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	writeTable(&out, sample())
	wantText(t, words(out.String()), "steady: 1 agents, 1 sessions, 10 actions/s, open loop, 1s; ", " cores, GOMAXPROCS ",
		"\noperation count rate/s p50 p90 p99 p99.9 max refused errors\n",
		"\norganization 0 0 0µs 0µs 0µs 0µs 0µs 0 0\n", "\naction 4 1000 2.00ms 4.00ms 4.00ms 4.00ms 4.00ms 1 1\n",
		"behind schedule when sent: p50 40ms, p99 40ms, max 40ms; never sent: 3")
}

func TestTotalsReport(t *testing.T) {
	f := sample()
	requested := effect{charge: charge{2, 1_250_000}}
	f.sessions[0].ledger.send(requested)
	f.sessions[0].ledger.finish(requested, requested, overLimit(limitValue))
	var out bytes.Buffer
	writeTotals(&out, f)
	wantText(t, words(out.String()), "refused for max_actions 0 requests 0 actions, 0 USD\n",
		"refused for max_value_usd 1 requests 2 actions, 1.25 USD\n", "totals of 1 sessions reconcile\n")
}

func TestVerdictNamesTheFirstAndCountsAll(t *testing.T) {
	var a audit
	for range keptViolations + 2 {
		a.add([]violation{found(ruleLost, "s1", "10 < 12")})
	}
	a.add([]violation{found(ruleUnchecked, "s2", "gone")})
	var out bytes.Buffer
	writeVerdict(&out, &a, 2)
	wantText(t, out.String(), "acknowledged but not stored: s1: 10 < 12\n", "and 3 more\n", "22 × acknowledged but not stored\n",
		"1 × could not be checked\n", "TOTALS DO NOT RECONCILE: 22 violations, 1 could not be checked\n")
	if n := strings.Count(out.String(), "s1: "); n != keptViolations {
		t.Errorf("%d violations printed, want %d", n, keptViolations)
	}
}

func TestVerdictWithoutViolations(t *testing.T) {
	var a audit
	a.add([]violation{found(ruleUnchecked, "s", "gone")})
	var out bytes.Buffer
	writeVerdict(&out, &a, 1)
	wantText(t, out.String(), "INCOMPLETE: no violations, 1 could not be checked\n")
}

func TestTakeMomentStartsAnew(t *testing.T) {
	s := sample().stats
	if m := s.takeMoment(); m.count != 4 || m.refused != 1 || m.errors != 1 || m.p99 < 4*time.Millisecond {
		t.Errorf("first moment: %+v", m)
	}
	if m := s.takeMoment(); m != (moment{}) {
		t.Errorf("second moment: %+v", m)
	}
	if got := s.all[opAction].latencies.TotalCount(); got != 4 {
		t.Errorf("the total counts %d, want 4", got)
	}
}

func TestProgressLines(t *testing.T) {
	var out bytes.Buffer
	stop := startProgress(newStats(), &out, 10*time.Millisecond)
	time.Sleep(50 * time.Millisecond)
	stop()
	text := out.String()
	if !strings.Contains(text, "errors 0\n") || strings.Contains(text, "\r") {
		t.Errorf("want plain lines, got %q", text)
	}
	time.Sleep(20 * time.Millisecond)
	if out.String() != text {
		t.Error("written after it was stopped")
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0µs", 950 * time.Microsecond: "950µs", 1250 * time.Microsecond: "1.25ms", 43 * time.Millisecond: "43ms",
		2500 * time.Millisecond: "2.50s", 70 * time.Second: "70.00s",
	} {
		if got := brief(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestShedRequestsAreCountedApart(t *testing.T) {
	f := must(newFleet(config{agents: 1, sessions: 1, addr: "http://127.0.0.1:1"}))(t)
	if text := shedOf(f); text != "" {
		t.Errorf("no request was shed: %q", text)
	}
	f.stats.acting.Store(true)
	due := time.Now()
	for _, r := range []reply{
		{status: 200}, {status: 403}, {status: 503, body: []byte(`{"code":"unavailable"}`)},
		{status: 503, body: []byte(`{"code":"outcome_unknown"}`)}, {status: 500},
	} {
		f.stats.record(opAction, due, due.Add(time.Millisecond), r)
	}
	if text, want := shedOf(f), "shed with 503 (among the errors): 1; served: 2, p50 1.00ms, p99 1.00ms"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}
