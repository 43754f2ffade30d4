package main

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// The means that limits are computed from are those of the actions.
func TestActionsMeetTheirMeans(t *testing.T) {
	const n, sessions = 20_000, 10
	var sum charge
	perSession := make([]int, sessions)
	for k := range int64(n) {
		a := nthAction(k, sessions)
		if a.asked.count < 1 || a.asked.count > 5 || a.asked.value < 0 || a.asked.value >= topValue {
			t.Fatalf("action %d asks for %s", k, a.asked)
		}
		sum = sum.plus(a.asked)
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

func TestActionBody(t *testing.T) {
	var got struct {
		Type  string `json:"action_type"`
		Count int64  `json:"count"`
		Value micros `json:"value_usd"`
	}
	for k := range int64(1000) {
		a := nthAction(k, 3)
		if err := json.Unmarshal(a.body(), &got); err != nil {
			t.Fatalf("%s: %v", a.body(), err)
		}
		if got.Type != a.kind || got.Count != a.asked.count || got.Value != a.asked.value {
			t.Fatalf("%s is not %+v", a.body(), a)
		}
	}
}

// A tenth of the sessions run full by actions, a tenth by value, the others never.
func TestLimitsDivideTheFleet(t *testing.T) {
	cfg := config{agents: 100, sessions: 2, rate: 5000, duration: 10 * time.Second}
	asked := expected(cfg.rate, cfg)
	var byActions, byValue int
	for i := range cfg.fleetSessions() {
		may := nthLimits(i, cfg)
		if may.actions < asked.count {
			byActions++
		}
		if may.value < asked.value {
			byValue++
		}
	}
	if byActions != 20 || byValue != 20 {
		t.Errorf("%d run full by actions and %d by value, want 20 of 200 each", byActions, byValue)
	}
}

// Nobody knows a closed loop's pace: its tight sessions run full at a slow one, its roomy ones not at a fast one.
func TestLimitsInClosedLoop(t *testing.T) {
	cfg := config{agents: 10, sessions: 1, rate: 0, duration: time.Second}
	slow, fast := expected(slowestPace, cfg), expected(fastestPace, cfg)
	if may := nthLimits(0, cfg); may.actions > slow.count {
		t.Errorf("tight in actions: %d, at a slow pace asked for %d", may.actions, slow.count)
	}
	if may := nthLimits(1, cfg); may.value > slow.value {
		t.Errorf("tight in value: %s, at a slow pace asked for %s", may.value, slow.value)
	}
	if may := nthLimits(2, cfg); may.actions < fast.count || may.value < fast.value {
		t.Errorf("roomy: %+v, at a fast pace asked for %s", may, fast)
	}
}

// Limits and lifetime are what the service takes, whatever the flags.
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
		slowest := setUpPatience + cfg.duration + overrun(cfg) + settlePatience
		if life := sessionLifetime(cfg); life <= slowest || life > 30*24*time.Hour {
			t.Errorf("%+v: lifetime %s", cfg, life)
		}
	}
}
