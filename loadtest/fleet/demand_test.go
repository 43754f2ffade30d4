package fleet

import (
	"math"
	"testing"
	"time"
)

// The limits assume these means.
func TestActionsMeetTheirMeans(t *testing.T) {
	const n, sessions = 20_000, 10
	cfg := config{agents: 2, sessions: 5}
	var sum charge
	perSession := make([]int, sessions)
	for k := range int64(n) {
		a := nthAction(k, cfg)
		if a.requested.count < 1 || a.requested.count > 5 || a.requested.value < 0 || a.requested.value >= topValue {
			t.Fatalf("action %d asks for %s", k, a.requested)
		}
		sum = sum.plus(a.requested)
		perSession[a.session]++
	}
	if mean := float64(sum.count) / n; math.Abs(mean-meanCount) > 0.05 {
		t.Errorf("mean count %f, want about %f", mean, meanCount)
	}
	if mean := float64(sum.value) / n; math.Abs(mean/meanValue-1) > 0.05 {
		t.Errorf("mean value %f micro-USD, want about %f", mean, meanValue)
	}
	for i, got := range perSession {
		if got < n/sessions*8/10 || got > n/sessions*12/10 {
			t.Errorf("session %d gets %d of %d actions", i, got, n)
		}
	}
}

// Each ending has its share of the transactions, and its cost.
func TestTransactionsEndInEveryWay(t *testing.T) {
	const n = 20_000
	cfg := config{agents: 2, sessions: 5, transactions: 25}
	ways := map[ending]int{}
	var less, more int
	for k := range int64(n) {
		a := nthAction(k, cfg)
		ways[a.ending]++
		if a.ending != noTransaction && a.requested.count != 1 {
			t.Fatalf("transaction %d asks for %s", k, a.requested)
		}
		switch {
		case a.ending != committed:
		case a.cost < a.requested.value:
			less++
		case a.cost > a.requested.value:
			more++
		}
	}
	for way, percent := range map[ending]float64{
		noTransaction: 75, committed: 0.25 * 70, rolledBack: 0.25 * 20, undone: 0.25 * 7, leftPending: 0.25 * 3,
	} {
		if got := 100 * float64(ways[way]) / n; math.Abs(got/percent-1) > 0.15 {
			t.Errorf("ending %d: %.2f %%, want about %.2f", way, got, percent)
		}
	}
	if less == 0 || more == 0 {
		t.Errorf("%d cost less than they held, %d more", less, more)
	}
}

// A tenth of the sessions fill up by actions, a tenth by value, the others never.
func TestLimitsDivideTheFleet(t *testing.T) {
	cfg := config{agents: 100, sessions: 2, rate: 5000, duration: 10 * time.Second}
	requested := expected(cfg.rate, cfg)
	var byActions, byValue int
	for i := range cfg.fleetSessions() {
		may := nthLimits(i, cfg)
		if may.actions < requested.count {
			byActions++
		}
		if may.value < requested.value {
			byValue++
		}
	}
	if byActions != 20 || byValue != 20 {
		t.Errorf("%d run full by actions and %d by value, want 20 of 200 each", byActions, byValue)
	}
}

// The pace of a closed loop is unknown: tight sessions must fill up at a slow pace, and roomy ones must not at a fast one.
func TestLimitsInClosedLoop(t *testing.T) {
	cfg := config{agents: 10, sessions: 1, rate: 0, duration: time.Second}
	slow, fast := expected(slowestPace, cfg), expected(fastestPace, cfg)
	if may := nthLimits(0, cfg); may.actions > slow.count {
		t.Errorf("tight in actions: %d, at a slow pace requested %d", may.actions, slow.count)
	}
	if may := nthLimits(1, cfg); may.value > slow.value {
		t.Errorf("tight in value: %s, at a slow pace requested %s", may.value, slow.value)
	}
	if may := nthLimits(2, cfg); may.actions < fast.count || may.value < fast.value {
		t.Errorf("roomy: %+v, at a fast pace requested %s", may, fast)
	}
}

// The service accepts the limits and lifetime for all flags.
func TestLimitsAtTheBoundsOfTheFlags(t *testing.T) {
	for _, cfg := range []config{
		{agents: 1, sessions: 1, rate: 1, duration: minDuration},
		{agents: 1, sessions: 2, rate: maxRate, duration: maxDuration},
		{agents: 1, sessions: 2, rate: 0, duration: maxDuration},
		{agents: 1000, sessions: maxSessions, rate: 1, duration: minDuration},
	} {
		for i := range min(cfg.fleetSessions(), 3) {
			may := nthLimits(i, cfg)
			if may.actions < 1 || may.actions > maxSessionActions || may.value < 1 || may.value > maxSessionValue {
				t.Errorf("%+v: session %d gets %+v", cfg, i, may)
			}
		}
		slowest := setUpPatience + cfg.duration + overrun(cfg) + reconcilePatience
		if life := sessionLifetime(cfg); life <= slowest || life > 30*24*time.Hour {
			t.Errorf("%+v: lifetime %s", cfg, life)
		}
	}
}
