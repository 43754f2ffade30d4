package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"remit/money"
	"remit/test/suite"
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

// wantReconciled runs a fleet whose totals must reconcile, and returns the report.
func wantReconciled(t *testing.T, cfg config) string {
	t.Helper()
	cfg.patience = closePatience // on a busy machine the ends of trees settle less than all at once
	code, report, progress := ran(t.Context(), cfg)
	if code != exitReconciled {
		t.Errorf("exit code %d\n%s%s", code, report, progress)
	}
	return report
}

// Without keys the outcome of charges with lost answers stays unknown, and they are not repeated: a repetition would be stored, and
// the totals would not reconcile. With keys none stays unknown: the SDK repeats them, and the service executes them once.
func TestTotalsReconcileInEachScenarioAlsoWithLostAnswers(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"all answered": noFault, "503": failsAfterCharge, "closed connection": hangsUp} {
		for _, of := range scenarios {
			for _, keys := range []bool{false, true} {
				if !suite.Long && of != "steady" && keys == (name == "all answered") {
					continue // make test loses the answers of repeatable requests, and of the simplest scenario's others
				}
				t.Run(of+" "+name, func(t *testing.T) {
					t.Parallel()
					cfg := smallRun(startFaulty(t, f))
					cfg.scenario, cfg.keys = scenario(of), keys
					report := wantReconciled(t, cfg)
					if lost := requests(report, "outcome unknown"); name != "all answered" && cfg.scenario == steady && (lost == 0) != keys {
						t.Errorf("%d requests of unknown outcome, with keys %t:\n%s", lost, keys, report)
					}
				})
			}
		}
	}
}

func TestStormMakesEveryAgentRefreshOnce(t *testing.T) {
	t.Parallel()
	cfg := smallRun(startFaulty(t, noFault))
	cfg.duration = 0 // the storm begins at once
	f := must(newFleet(cfg))(t)
	must(0, f.setUp(t.Context()))(t)
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

// What each check finds, its own test shows. Here each kind of answer reaches its check, in a whole run.
func TestRunsDetectFaultsOfTheService(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		scenario scenario
		fault    fault
		rule     rule
	}{
		{"charges twice", steady, chargesTwice, ruleInvented},
		{"charges twice and lies", steady, chargesTwiceLies, ruleSurplus},
		{"loses charges", steady, losesCharges, ruleLost},
		{"keeps spent tokens", steady, at(onRefresh, func(q *asked) answered {
			r := q.honestly()
			r.body.set("refresh_token", fmt.Sprintf("%q", decoded[tokenPair](q.body).RefreshToken))
			return r
		}), ruleRefresh},
		{"breaks the successor", steady, breaksSuccessor, ruleRefresh},
		{"never ends", steady, neverEnds, ruleEnd},
		{"acts after the end", steady, lies(onAction, func(r *answered) {
			if r.code() == codeNotActive {
				*r = tells(http.StatusOK, "{}")
			}
		}), ruleActedAfter},
		{"refuses a token it then accepts again", steady, at(onAction, seldom(func(*asked) answered {
			return problemOf(http.StatusUnauthorized, "invalid_token")
		})), ruleToken},
		{"loses holds", steady, at(onBegin, func(q *asked) answered {
			hold := q.body.number("value_usd")
			q.body.set("value_usd", 0)
			r := q.honestly()
			r.body.set("value_usd", hold)
			r.body.set("value_held_usd", hold)
			return r
		}), ruleLost},
		{"keeps holds, and what was undone", steady, at(onRollback, func(q *asked) answered {
			r := q.undone()
			r.body.set("status", `"rolled_back"`)
			r.body.set("value_held_usd", 0)
			return r
		}), ruleSurplus},
		{"forgets overage", steady, lies(onRead, func(r *answered) { r.body.set("value_overage_usd", 0) }), ruleLost},
		{"skips numbers", steady, lies(onBegin, adds("sequence_number", money.USD)), ruleSequence},
		{"leaves transactions pending", steady, lies("GET /v1/transactions", func(r *answered) { r.body.replace("rolled_back", "pending") }), ruleEnd},
		{"forgets commits", steady, at(onCommit, seldom(func(q *asked) answered {
			cost := q.body.number("value_usd")
			r := q.undone()
			r.body.set("status", `"committed"`)
			r.body.set("value_held_usd", 0)
			r.body.set("value_usd", cost)
			return r
		})), ruleLost},
		{"refuses to settle", steady, at(onCommit, seldom(func(*asked) answered { return problemOf(http.StatusConflict, codeNotPending) })), ruleStatus},

		{"invalidated tokens are accepted", storm, lies(onRead, func(r *answered) {
			if r.status == http.StatusUnauthorized {
				*r = tells(http.StatusOK, "{}")
			}
		}), ruleInvalidToken},
		{"storm with refreshes that are refused", storm, breaksSuccessor, ruleRefresh},
		{"verify names another", mixed, lies("GET /v1/auth/verify", func(r *answered) { r.header.Set("X-Agent-Id", "another") }), ruleIdentity},
		{"a list has another's", mixed, lies("GET /v1/sessions", func(r *answered) { r.body.replace(`"agent_id":"`, `"agent_id":"x`) }), ruleIdentity},
		{"batches count twice", mixed, at("POST /v1/actions", func(q *asked) answered { _, second := q.twice(); return second }), ruleInvented},
		{"reads show twice", mixed, chargesTwiceLies, ruleSurplus},
		{"charges are lost", mixed, losesCharges, ruleLost},
		{"sessions do not end", mixed, neverEnds, ruleEnd},
		{"a session's usage is a micro-dollar more", mixed, lies("GET /v1/sessions/*/usage", adds("value_usd", 1)), ruleUsage},
		{"the organization's usage is an action less", mixed, lies("GET /v1/usage", adds("action_count", -money.USD)), ruleUsage},
		{"what leases spent is lost", leased, showsLess, ruleLost},
		{"what leases did not spend is kept", leased, showsMore, ruleSurplus},
		{"charges near the end of a leased session count twice", leased, chargesTwice, ruleSurplus},
		{"what a child used is lost", trees, showsLess, ruleLost},
		{"what a child used counts twice", trees, showsMore, ruleSurplus},
		{"what is set aside does not come back", trees, keepsParts, rulePart},
		{"children get more than there is", trees, lies("GET /v1/sessions/*/tree", func(r *answered) {
			r.body.set("value_delegated_usd", r.body.number("max_value_usd")+1)
		}), ruleExceeded},
		{"top-ups raise too much", trees, at("PATCH /v1/sessions/*", func(q *asked) answered {
			q.body.set("add_value_usd", 2*q.body.number("add_value_usd"))
			return q.honestly()
		}), ruleLimits},
		{"sessions outlive their root", trees, lies(onRead, func(r *answered) { r.body.replace("completed", "active") }), ruleEnd},
		{"roots get more than the budget", trees, lies("GET /v1/budget", func(r *answered) {
			r.body.set("value_used_usd", r.body.number("max_value_usd")+1)
		}), ruleExceeded},
		{"the budget counts twice", trees, lies("GET /v1/budget", adds("value_used_usd", 1)), ruleBudget},
		{"suspensions are forgotten", trees, neverSuspends, ruleSuspended},
		{"resumptions are forgotten", trees, at("POST /v1/sessions/*/resume", (*asked).undone), ruleSuspended},
		{"charges in trees are lost", trees, losesCharges, ruleLost},
		{"refuses within the limits", trees, refusesEarly, ruleRefusal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantDetected(t, test.fault, test.rule, config{scenario: test.scenario})
		})
	}
}

func TestAKeyThatIsExecutedTwiceIsDetected(t *testing.T) {
	t.Parallel()
	wantDetected(t, func(q *asked) answered {
		q.Header.Del("Idempotency-Key")
		return failsAfterCharge(q)
	}, ruleSurplus, config{scenario: steady, keys: true})
}

// wantDetected runs a fleet on a faulty service. A run that reconciles, but was too slow to send all that it has to, says nothing about the
// fault: it is repeated.
func wantDetected(t *testing.T, f fault, want rule, of config) {
	t.Helper()
	for t.Context().Err() == nil {
		cfg := smallRun(startFaulty(t, f))
		cfg.scenario, cfg.keys = of.scenario, of.keys
		code, report, progress := ran(t.Context(), cfg)
		if code == exitReconciled && !strings.Contains(report, "never sent: 0\n") {
			continue
		}
		if code != exitFailed || !strings.Contains(report, string(want)) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, report, progress)
		}
		return
	}
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
