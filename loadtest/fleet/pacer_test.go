package fleet

import (
	"context"
	"math"
	"testing"
	"time"
)

// clock advances only by sleep and advance.
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

// on makes a pacer use the clock.
func (c *clock) on(p *pacer) *pacer {
	if !p.until.IsZero() {
		p.until = c.now.Add(p.until.Sub(p.start))
	}
	p.start, p.now, p.sleep = c.now, func() time.Time { return c.now }, c.sleep
	return p
}

func TestPacerKeepsItsSchedule(t *testing.T) {
	c := &clock{now: time.Unix(1000, 0)}
	start := c.now
	p := c.on(newActionPacer(4, time.Second, 0))
	for k := range int64(4) {
		number, due, ok := p.next(t.Context())
		if want := start.Add(time.Duration(k) * 250 * time.Millisecond); !ok || number != k || !due.Equal(want) {
			t.Errorf("start %d: number %d, due %s, %v; want %s", k, number, due, ok, want)
		}
		if c.now.Before(due) {
			t.Errorf("start %d handed out before it was due", k)
		}
	}
	if _, _, ok := p.next(t.Context()); ok {
		t.Error("a fifth start")
	}
}

// A late worker gets the due time that it missed, at once: lateness does not move the schedule.
func TestPacerKeepsDueTimesOfLateStarts(t *testing.T) {
	c := &clock{now: time.Unix(1000, 0)}
	start := c.now
	p := c.on(newActionPacer(10, time.Second, time.Second))
	c.now = c.now.Add(250 * time.Millisecond)
	for k := range 3 {
		_, due, ok := p.next(t.Context())
		if want := start.Add(time.Duration(k) * 100 * time.Millisecond); !ok || !due.Equal(want) {
			t.Errorf("start %d due %s, %v; want %s", k, due, ok, want)
		}
	}
	if len(c.slept) != 0 {
		t.Errorf("slept %s although late", c.slept)
	}
	p.next(t.Context())
	if len(c.slept) != 1 || c.slept[0] != 50*time.Millisecond {
		t.Errorf("slept %s, want 50ms until start 3", c.slept)
	}
}

func TestPacerGivesUp(t *testing.T) {
	c := &clock{now: time.Unix(1000, 0)}
	p := c.on(newActionPacer(10, time.Second, time.Second))
	p.next(t.Context())
	c.now = c.now.Add(2*time.Second + 1)
	if _, _, ok := p.next(t.Context()); ok {
		t.Error("a start after the time was up")
	}
	if got := p.unsent(); got != 9 {
		t.Errorf("unsent: %d, want 9", got)
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
	for range 3 {
		c.now = c.now.Add(300 * time.Millisecond)
		if _, due, ok := p.next(t.Context()); !ok || !due.Equal(c.now) {
			t.Errorf("due %s, %v; want now", due, ok)
		}
	}
	c.now = c.now.Add(300 * time.Millisecond)
	if _, _, ok := p.next(t.Context()); ok {
		t.Error("a start after the duration")
	}
	if p.unsent() != 0 || len(c.slept) != 0 {
		t.Errorf("unsent %d, slept %s", p.unsent(), c.slept)
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
