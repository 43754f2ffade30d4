package fleet

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"
)

type clock struct {
	now   time.Time
	slept []time.Duration
}

func (c *clock) sleep(_ context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	c.slept = append(c.slept, d)
	c.now = c.now.Add(d)
}

func (c *clock) on(p *pacer) *pacer {
	if !p.until.IsZero() {
		p.until = c.now.Add(p.until.Sub(p.start))
	}
	p.start, p.now, p.sleep = c.now, func() time.Time { return c.now }, c.sleep
	return p
}

// due returns when the next starts are due, at most n, and fails the test if one is handed out before. A pause passes before each.
func (c *clock) due(t *testing.T, p *pacer, n int, pause time.Duration) (after []time.Duration) {
	t.Helper()
	for range n {
		c.now = c.now.Add(pause)
		k, due, ok := p.next(t.Context())
		if !ok {
			break
		}
		if k != int64(len(after)) || c.now.Before(due) {
			t.Errorf("start %d has number %d, or was handed out before it was due", len(after), k)
		}
		after = append(after, due.Sub(p.start))
	}
	return after
}

func TestPacerKeepsItsSchedule(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		rate           int
		patience, late time.Duration
		due, slept     []time.Duration
		unsent         int64
	}{
		"in time": {4, 0, 0, []time.Duration{0, 250 * ms, 500 * ms, 750 * ms}, []time.Duration{250 * ms, 250 * ms, 250 * ms}, 0},
		// A late worker gets the due time that it missed, at once: lateness does not move the schedule.
		"late":     {4, time.Second, 600 * ms, []time.Duration{0, 250 * ms, 500 * ms, 750 * ms}, []time.Duration{150 * ms}, 0},
		"too late": {10, time.Second, 2*time.Second + 1, nil, nil, 10},
	} {
		c := &clock{now: time.Unix(1000, 0)}
		p := c.on(newActionPacer(test.rate, time.Second, test.patience))
		c.now = c.now.Add(test.late)
		if due := c.due(t, p, 5, 0); !slices.Equal(due, test.due) || !slices.Equal(c.slept, test.slept) || p.unsent() != test.unsent {
			t.Errorf("%s: due %v, slept %v, unsent %d; want %v, %v, %d", name, due, c.slept, p.unsent(), test.due, test.slept, test.unsent)
		}
	}
}

func TestPacerStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, ok := newPacer(1, 0, 0).next(ctx); ok {
		t.Error("a start after the context was done")
	}
}

func TestPacerInClosedLoop(t *testing.T) {
	c := &clock{now: time.Unix(1000, 0)}
	p := c.on(newActionPacer(0, time.Second, time.Second))
	const pause = 300 * time.Millisecond
	if due := c.due(t, p, 5, pause); !slices.Equal(due, []time.Duration{pause, 2 * pause, 3 * pause}) || p.unsent() != 0 || len(c.slept) != 0 {
		t.Errorf("due %v, unsent %d, slept %s", due, p.unsent(), c.slept)
	}
}

// The longest and fastest run neither drifts nor overflows, even at a rate that does not divide a second.
func TestPacerAtItsBounds(t *testing.T) {
	for _, rate := range []int{3, 7, maxRate - 1, maxRate} {
		p := newActionPacer(rate, maxDuration, 0)
		if want := int64(rate) * 3600; p.count != want {
			t.Fatalf("rate %d: %d starts, want %d", rate, p.count, want)
		}
		ideal := float64(p.count-1) / float64(rate)
		if got := p.dueAt(p.count - 1).Sub(p.start).Seconds(); math.Abs(got-ideal) > 1e-6 {
			t.Errorf("rate %d: last start after %fs, want %fs", rate, got, ideal)
		}
	}
}

func TestDriveBoundsCallsInFlight(t *testing.T) {
	const workers = 4
	under := make(chan struct{}, workers)
	drive(t.Context(), workers, newPacer(200, 0, 0), func(int64, time.Time) {
		select {
		case under <- struct{}{}:
		default:
			t.Error("more calls in flight than workers")
		}
		time.Sleep(time.Microsecond)
		<-under
	})
}
