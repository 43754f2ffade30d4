package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Rounds are too short for meaningful results here; the test checks that every floor is measured.
func TestFloorsAreMeasuredBesideTheService(t *testing.T) {
	t.Parallel()
	own, err := startService(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.stop(); err != nil {
			t.Error(err)
		}
	}()
	cfg := smallRun(own.addr)
	f, err := newFleet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.setUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c, err := compare(t.Context(), f, own, 50*time.Millisecond, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	want := 3
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		want = 2
		if len(c.skipped) != 1 || !strings.Contains(c.skipped[0], "redis-benchmark is not installed") {
			t.Errorf("skipped without a word: %q", c.skipped)
		}
	}
	if len(c.ratios) != want {
		t.Errorf("ratios: %+v", c.ratios)
	}
	for _, m := range c.measured {
		if len(m.all) != compareRounds || m.perSecond() <= 0 || m.p50() <= 0 {
			t.Errorf("%+v", m)
		}
	}
}

func TestContendersTakeTurns(t *testing.T) {
	t.Parallel()
	var turns []string
	takes := func(name string) contender {
		return contender{name, func(_ context.Context, d time.Duration) (speed, error) {
			turns = append(turns, name+" "+d.String())
			return speed{float64(len(turns)), time.Duration(len(turns))}, nil
		}}
	}
	var c comparison
	if err := c.measure(t.Context(), 2*time.Second, []contender{takes("a"), takes("b")}, []contender{takes("c")}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(turns, ", "), strings.TrimSuffix(strings.Repeat("a 2s, b 2s, c 1s, ", compareRounds), ", "); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if m := c.measured[0]; m.perSecond() != 7 || m.p50() != 7 {
		t.Errorf("medians %f, %d", m.perSecond(), m.p50())
	}
}

func TestFailingContenderEndsTheComparison(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var c comparison
	err := c.measure(t.Context(), 10*time.Millisecond, []contender{closedLoop("a", 3, func() error { return broken })}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.measure(ctx, time.Hour, []contender{closedLoop("a", 3, func() error { return nil })}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestRatiosAreOfMedians(t *testing.T) {
	t.Parallel()
	c := comparison{measured: []rounds{
		{nameCharge, []speed{{10, 1}, {30, 1}, {20, 1}}}, {nameBare, []speed{{40, 1}, {39, 1}, {900, 1}}},
		{nameChargeAlone, []speed{{1, 300}}}, {nameScriptAlone, []speed{{1, 100}}},
	}}
	c.divide()
	want := []ratio{{"throughput: charge / bare handler", 0.5}, {"latency p50: charge / go-redis", 3}}
	if len(c.ratios) != 2 || c.ratios[0] != want[0] || c.ratios[1] != want[1] {
		t.Errorf("%+v, want %+v", c.ratios, want)
	}
	var out bytes.Buffer
	writeComparison(&out, &c)
	if !strings.Contains(words(out.String()), "throughput: charge / bare handler 0.50 ×") {
		t.Error(out.String())
	}
}

func TestReadBenchmarkTakesTheEndOfTheLine(t *testing.T) {
	t.Parallel()
	csv := "\"test\",\"rps\"\n\"EVALSHA \x01\",\"\n\xff 1\",\"52000.50\",\"0.9\",\"0.1\",\"0.750\",\"1.5\",\"2.0\",\"9.1\"\n"
	got, err := readBenchmark(csv)
	if err != nil || got != (speed{52000.5, 750 * time.Microsecond}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, csv := range []string{"", "ERR", "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\""} {
		if _, err := readBenchmark(csv); err == nil {
			t.Errorf("%q is read", csv)
		}
	}
}

func TestPlaceholderIDsContainNoZeroByte(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if id := placeholderID(); len(id) != 16 || strings.Contains(id, "\x00") {
			t.Fatalf("%x", id)
		}
	}
}
