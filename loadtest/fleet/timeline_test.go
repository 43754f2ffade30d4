package fleet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// Latency counts at the time when the action was due, the answer at the time when it came.
func TestTimelinePutsLatencyAtTheIntendedTime(t *testing.T) {
	t.Parallel()
	var l timeline
	l.add(time.Now(), time.Now(), acknowledged) // before the run: not counted
	l.begin(newPacer(20, 2*time.Second, 0), 2*time.Second)
	at := func(after time.Duration) time.Time { return l.start.Add(after) }
	l.add(at(0), at(1050*time.Millisecond), acknowledged)
	l.add(at(50*time.Millisecond), at(60*time.Millisecond), refused)
	l.add(at(50*time.Millisecond), at(60*time.Millisecond), unknown)
	l.offer(at(120*time.Millisecond), 7)
	if l.width != 100*time.Millisecond || len(l.slices) != 11 {
		t.Fatalf("%d slices of %s", len(l.slices), l.width)
	}
	first, last := l.slices[0], l.slices[10]
	if first.done != 0 || first.refused != 1 || first.errors != 1 || last.done != 1 || last.latencies != nil {
		t.Errorf("first %+v, last %+v", first, last)
	}
	if longest := quantile(first.latencies, 100); math.Abs(longest.Seconds()-1.05) > 0.02 {
		t.Errorf("the longest is %s", longest)
	}
	if l.offered(0) != 1 || l.offered(1) != 8 {
		t.Errorf("offered %d and %d", l.offered(0), l.offered(1))
	}
}

func TestTimelineOfALongRunHasFewSlices(t *testing.T) {
	t.Parallel()
	for _, duration := range []time.Duration{minDuration, 10 * time.Second, time.Minute, maxDuration} {
		var l timeline
		l.begin(newPacer(1, duration, 0), duration)
		if n := duration / l.width; n > 2*wantedSlices || l.width < thinnest {
			t.Errorf("%s: %d slices of %s", duration, n, l.width)
		}
	}
}

func TestKindsSayNothingParticular(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]reply{
		"503 unavailable":    problemReply(503, `"code":"unavailable"`),
		"no answer in time":  {err: fasthttp.ErrTimeout},
		"connection refused": {err: fmt.Errorf("dial 127.0.0.1:999: %w", syscall.ECONNREFUSED)},
		"connection closed":  {err: fmt.Errorf("read 127.0.0.1:999: %w", io.EOF)},
		"no connection free": {err: fasthttp.ErrNoFreeConns},
		"no answer":          {err: errors.New("something about 127.0.0.1:999")},
	} {
		if got := kindOf(r); got != want {
			t.Errorf("%v is %q, not %q", r.err, got, want)
		}
	}
}

func TestKindsAreBoundedAndSorted(t *testing.T) {
	t.Parallel()
	var k kinds
	for i := range 3 * maxKinds {
		k.add(opAction, problemReply(400, fmt.Sprintf(`"code":"c%d"`, i)))
	}
	k.add(opRead, reply{err: io.EOF})
	list := k.sorted()
	if len(list) > maxKinds+2 {
		t.Errorf("%d kinds", len(list))
	}
	if first := list[0]; !first.Fault || list[1].What != "other" || list[1].Count != 2*maxKinds {
		t.Errorf("first %+v, then %+v", first, list[1])
	}
}
