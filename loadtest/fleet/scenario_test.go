package fleet

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestBurstsHaveFiveTimesTheLowRateInEachFifthSlot(t *testing.T) {
	t.Parallel()
	const span, count, slots = 20 * time.Second, 9000, 20
	p := newPacer(count, span, 0)
	p.warp = inBursts
	for slot := range slots {
		from := p.start.Add(time.Duration(slot) * span / slots)
		got := p.dueBefore(from.Add(span/slots)) - p.dueBefore(from)
		want := int64(count / slots * 5 / 9)
		if slot%5 == 4 {
			want *= 5
		}
		if got < want-1 || got > want+1 {
			t.Errorf("slot %d has %d arrivals, want %d", slot, got, want)
		}
	}
}

func TestBurstsKeepOrderAndSpan(t *testing.T) {
	t.Parallel()
	for _, span := range []time.Duration{minDuration, 10 * time.Second, maxDuration, 3, 7 * time.Nanosecond} {
		last := time.Duration(0)
		for i := range int64(1000) {
			at := inBursts(time.Duration(int64(span)*i/1000), span)
			if at < last || at > span {
				t.Fatalf("of %s, moment %d is at %s, after %s", span, i, at, last)
			}
			last = at
		}
	}
}

func TestPacerCountsWhatIsDueBefore(t *testing.T) {
	t.Parallel()
	p := newPacer(10, time.Second, 0)
	for after, want := range map[time.Duration]int64{0: 0, 1: 1, 100 * time.Millisecond: 1, 500 * time.Millisecond: 5, time.Minute: 10} {
		if got := p.dueBefore(p.start.Add(after)); got != want {
			t.Errorf("%d due before %s, want %d", got, after, want)
		}
	}
	if got := newActionPacer(0, time.Second, 0).dueBefore(time.Now().Add(time.Hour)); got != 0 {
		t.Errorf("%d due in closed loop", got)
	}
}

func TestMixAddsUpTo100Percent(t *testing.T) {
	t.Parallel()
	const n = 20_000
	drawn, sum := map[task]int{}, 0
	for k := range int64(n) {
		drawn[nthAction(k, config{agents: 2, sessions: 5, scenario: mixed}).task]++
	}
	for _, part := range mix {
		sum += part.percent
		if got := 100 * float64(drawn[part.task]) / n; got < 0.7*float64(part.percent) || got > 1.3*float64(part.percent) {
			t.Errorf("task %d has %.1f %%, want %d", part.task, got, part.percent)
		}
	}
	if sum != 100 {
		t.Errorf("the parts make %d %%", sum)
	}
}

func TestBatchesChargeSessionsOfOneAgent(t *testing.T) {
	t.Parallel()
	cfg := config{agents: 7, sessions: 5}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		session := r.IntN(cfg.fleetSessions())
		items := drawBatch(r, session, cfg)
		if len(items) < minBatch || len(items) > maxBatch {
			t.Errorf("%d items", len(items))
		}
		for _, item := range items {
			if item.session%cfg.agents != session%cfg.agents || item.session >= cfg.fleetSessions() {
				t.Errorf("session %d in a batch of the agent of %d", item.session, session)
			}
		}
	}
}

func TestInvalidatedTokensHaveAnotherSignature(t *testing.T) {
	t.Parallel()
	wire := newTransport("http://127.0.0.1:1", 1)
	if got, is := wire.invalidate("Bearer h.c.Sig"); is || got != "Bearer h.c.Sig" {
		t.Errorf("invalidated before the storm: %s", got)
	}
	wire.expire(map[string]bool{"h.c.Sig": true, "h.c.Aig": true})
	for credential, want := range map[string]string{
		"Bearer h.c.Sig": "Bearer h.c.Aig", "Bearer h.c.Aig": "Bearer h.c.Big", "Bearer h.c.new": "Bearer h.c.new", "": "",
	} {
		if got, is := wire.invalidate(credential); got != want || is != (got != credential) {
			t.Errorf("%q becomes %q, %t", credential, got, is)
		}
	}
	if n := wire.refused.Load(); n != 2 {
		t.Errorf("counted %d", n)
	}
}

func TestTotalsReconcileInEachScenario(t *testing.T) {
	t.Parallel()
	for _, name := range scenarios {
		for _, keys := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				cfg := smallRun(startFake(t, honest))
				cfg.scenario, cfg.keys = scenario(name), keys
				wantReconciled(t, cfg)
			})
		}
	}
}

// wantReconciled runs a fleet whose totals must reconcile, and returns the report.
func wantReconciled(t *testing.T, cfg config) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), cfg, &stdout, &stderr); code != exitReconciled {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	return stdout.String()
}

// Without keys the outcome of charges with lost answers stays unknown, and they are not repeated: a repetition would be stored, and
// the totals would not reconcile. With keys none stays unknown: the SDK repeats them, and the service executes them once.
func TestTotalsReconcileWithLostAnswers(t *testing.T) {
	t.Parallel()
	for _, of := range []scenario{steady, mixed, leased, trees} {
		for name, f := range map[string]fault{"503": failsAfterCharge, "closed connection": hangsUp} {
			for _, keys := range []bool{false, true} {
				t.Run(string(of)+" "+name, func(t *testing.T) {
					t.Parallel()
					cfg := smallRun(startFake(t, f))
					cfg.scenario, cfg.keys = of, keys
					report := wantReconciled(t, cfg)
					if lost := requests(report, "outcome unknown"); of == steady && (lost == 0) != keys {
						t.Errorf("%d requests of unknown outcome, with keys %t:\n%s", lost, keys, report)
					}
				})
			}
		}
	}
}

func TestStormMakesEveryAgentRefreshOnce(t *testing.T) {
	t.Parallel()
	cfg := smallRun(startFake(t, honest))
	cfg.duration = 0 // the storm begins at once
	f := must(newFleet(cfg))(t)
	if err := f.setUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.stats.timeline.begin(newPacer(1, time.Second, 0), time.Second)
	f.storm(t.Context())
	if !f.audit.clean() {
		t.Errorf("%v", f.audit.kept)
	}
	agents := int64(cfg.agents)
	if met := f.wire.refused.Load(); met != agents {
		t.Errorf("%d requests met an expired token, want %d", met, agents)
	}
	for _, op := range []operation{opRefresh, opRead} {
		if n := f.stats.all[op].latencies.TotalCount(); n != agents {
			t.Errorf("%s: %d, want %d", op, n, agents)
		}
	}
}

func TestRunsDetectFaultsOfTheService(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		scenario scenario
		fault    fault
		rule     rule
	}{
		{"charges twice", steady, chargesTwice, ruleInvented},
		{"charges twice and lies", steady, chargesTwiceLie, ruleSurplus},
		{"loses charges", steady, losesCharges, ruleLost},
		{"forgets limits", steady, forgetsLimits, ruleExceeded},
		{"refuses early", steady, refusesEarly, ruleRefusal},
		{"names the wrong limit", steady, namesWrongLimit, ruleRefusal},
		{"miscounts", steady, miscounts, ruleRemainder},
		{"refuses new tokens", steady, refusesTokens, ruleToken},
		{"keeps spent tokens", steady, keepsTokens, ruleRefresh},
		{"breaks the successor", steady, breaksSuccessor, ruleRefresh},
		{"never ends", steady, neverEnds, ruleEnd},
		{"acts after the end", steady, actsAfterEnd, ruleActedAfter},
		{"refuses a token it then accepts again", steady, refusesTokensOnce, ruleToken},
		{"loses holds", steady, losesHolds, ruleLost},
		{"keeps holds", steady, keepsHolds, ruleSurplus},
		{"overspends", steady, overspends, ruleExceeded},
		{"forgets overage", steady, forgetsOverage, ruleLost},
		{"invents overage", steady, inventsOverage, ruleRefusal},
		{"skips numbers", steady, skipsNumbers, ruleSequence},
		{"repeats numbers", steady, repeatsNumbers, ruleSequence},
		{"charges rollbacks", steady, chargesRollbacks, ruleSurplus},
		{"keeps what was undone", steady, keepsUndone, ruleSurplus},
		{"leaves transactions pending", steady, leavesPending, ruleEnd},
		{"forgets commits", steady, forgetsCommits, ruleLost},
		{"refuses to settle", steady, refusesCommits, ruleStatus},
		{"executes a repeated key twice", steady, ignoresKeys, ruleSurplus},

		{"invalidated tokens are accepted", storm, acceptsInvalidTokens, ruleInvalidToken},
		{"storm with refreshes that are refused", storm, breaksSuccessor, ruleRefresh},
		{"verify names another", mixed, verifiesOthers, ruleIdentity},
		{"a list has another's", mixed, listsOthers, ruleIdentity},
		{"batches count twice", mixed, batchesTwice, ruleInvented},
		{"reads show twice", mixed, chargesTwiceLie, ruleSurplus},
		{"charges are lost", mixed, losesCharges, ruleLost},
		{"sessions do not end", mixed, neverEnds, ruleEnd},
		{"a session's usage is a micro-dollar less", mixed, typesLose, ruleUsage},
		{"the organization's usage is an action less", mixed, reportsLose, ruleUsage},
		{"what leases spent is lost", leased, losesSettlements, ruleLost},
		{"what leases did not spend is kept", leased, keepsLeases, ruleSurplus},
		{"charges near the end of a leased session count twice", leased, chargesTwice, ruleSurplus},
		{"what a child used is lost", trees, losesChildren, ruleLost},
		{"what a child used counts twice", trees, takesTwice, ruleSurplus},
		{"what is set aside does not come back", trees, keepsParts, rulePart},
		{"children get more than there is", trees, overdelegates, ruleExceeded},
		{"top-ups set nothing aside", trees, topsUpAlone, ruleExceeded},
		{"top-ups raise too much", trees, topsUpTooMuch, ruleLimits},
		{"descendants outlive their root", trees, endsAlone, ruleEnd},
		{"roots get more than the budget", trees, forgetsBudget, ruleExceeded},
		{"the budget counts twice", trees, budgetTakesTwice, ruleBudget},
		{"suspensions do not reach descendants", trees, suspendsAlone, ruleSuspended},
		{"resumptions are forgotten", trees, staysSuspended, ruleSuspended},
		{"charges in trees are lost", trees, losesCharges, ruleLost},
		{"refusals within the limits", trees, refusesEarly, ruleRefusal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, report, progress := runUntilAllIsSent(t, test.scenario, test.fault)
			if code != exitFailed || !strings.Contains(report, string(test.rule)) {
				t.Errorf("exit code %d, no %q in\n%s%s", code, test.rule, report, progress)
			}
		})
	}
}

// runUntilAllIsSent runs a scenario against a fake with a fault. A run that reconciles, but was too slow to send all that it
// has to, says nothing about the fault: it is repeated.
func runUntilAllIsSent(t *testing.T, of scenario, f fault) (code int, report, progress string) {
	t.Helper()
	for t.Context().Err() == nil {
		cfg := smallRun(startFake(t, f))
		cfg.scenario, cfg.keys = of, f == ignoresKeys // without keys it is honest
		var stdout, stderr bytes.Buffer
		code, report, progress = run(t.Context(), cfg, &stdout, &stderr), stdout.String(), stderr.String()
		if code != exitReconciled || strings.Contains(report, "never sent: 0\n") {
			break
		}
	}
	return code, report, progress
}

func TestUnreadableBatchHasUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for body, faulty := range map[string]bool{
		`[{"status":200,"body":{}},{"status":403,"body":{"code":"x"}}]`: false, `[{"status":200,"body":{}}]`: true, `{`: true,
	} {
		replies, err := readBatch(reply{status: 200, body: []byte(body)}, 2)
		if len(replies) != 2 || (err != nil) != faulty || faulty != (replies[0].outcome() == unknown) {
			t.Errorf("%s: %v, %v", body, replies, err)
		}
	}
	if replies, err := readBatch(overLimit(limitValue), 2); err != nil || replies[1].outcome() != refused {
		t.Errorf("refused whole: %v, %v", replies, err)
	}
}
