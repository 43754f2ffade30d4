package chart

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestABarTurnsYellowAndRedAtItsShares(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		usage Usage
		share string
		want  Level
	}{
		{Usage{Used: 0, Limit: 100}, "0 %", Free},
		{Usage{Used: 79_999, Limit: 100_000}, "79 %", Free},
		{Usage{Used: 80, Limit: 100}, "80 %", Near},
		{Usage{Used: 50, Held: 20, Delegated: 10, Limit: 100}, "80 %", Near},
		{Usage{Used: 99_999, Limit: 100_000}, "99 %", Near},
		{Usage{Used: 100, Limit: 100}, "100 %", Full},
		{Usage{Used: 70, Over: 50, Limit: 100}, "120 %", Full},
		{Usage{Used: -5, Limit: 100}, "0 %", Free},
		{Usage{Limit: 0}, "100 %", Full},
		{Usage{Used: math.MaxInt64, Held: math.MaxInt64, Limit: math.MaxInt64}, "100 %", Full},
	} {
		if got := tc.usage.Level(); got != tc.want || tc.usage.Share() != tc.share {
			t.Errorf("%+v: %q, %s, want %q, %s", tc.usage, got, tc.usage.Share(), tc.want, tc.share)
		}
		requireClass(t, string(tc.usage.SVG()), tc.want)
	}
}

func TestALifetimeTurnsYellowAndRedAtItsShares(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		passed, ended time.Duration
		share         string
		want          Level
	}{
		{0, time.Hour, "0 %", Free},
		{48*time.Minute - 1, time.Hour, "79 %", Free},
		{48 * time.Minute, time.Hour, "80 %", Near},
		{time.Hour, time.Hour, "over", Full},
		{2 * time.Hour, 30 * time.Minute, "over", Free}, // it ended early, so its time did not run out
		{2 * time.Hour, 50 * time.Minute, "over", Near},
	} {
		l := Lifetime{Start: noon, End: noon.Add(tc.ended), Now: noon.Add(tc.passed), Expires: noon.Add(time.Hour)}
		if l.Level() != tc.want || l.Share() != tc.share || !l.NearAt().Equal(noon.Add(48*time.Minute)) {
			t.Errorf("%s of %s: %q, %s, near at %s", tc.passed, tc.ended, l.Level(), l.Share(), l.NearAt())
		}
		requireClass(t, string(l.SVG()), tc.want)
	}
}

// requireClass checks the classes of a bar by its level.
func requireClass(t *testing.T, drawn string, want Level) {
	t.Helper()
	classes := `class="chart-usage` + map[Level]string{Free: "", Near: " chart-near", Full: " chart-full"}[want] + `"`
	if !strings.Contains(drawn, classes) {
		t.Errorf("no %s: %s", classes, drawn)
	}
}
