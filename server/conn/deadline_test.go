package conn

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

const (
	soon = 10 * time.Millisecond
	late = time.Hour
)

// awaitMoved waits until the socket's own deadline is the one that was set last.
func awaitMoved(t *testing.T, d *deadline) {
	t.Helper()
	await(t, "the earlier deadline has an effect", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.armed.Equal(d.wanted)
	})
}

func TestADeadlineThatMovesAwayLeavesTheTimer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		set   []time.Time
		armed []time.Time
	}{
		"later and later": {[]time.Time{now.Add(1), now.Add(2), now.Add(3)}, []time.Time{now.Add(1)}},
		"none after one":  {[]time.Time{now.Add(1), {}}, []time.Time{now.Add(1)}},
		"earlier":         {[]time.Time{now.Add(2), now.Add(1)}, []time.Time{now.Add(2), now.Add(1)}},
		"one after none":  {[]time.Time{{}, now.Add(1)}, []time.Time{{}, now.Add(1)}},
		"none again":      {[]time.Time{{}, {}}, []time.Time{{}, {}}},
		"back before":     {[]time.Time{now.Add(2), now.Add(3), now.Add(1), now.Add(2)}, []time.Time{now.Add(2), now.Add(1)}},
	} {
		var armed []time.Time
		d := deadline{socket: func(at time.Time) error { armed = append(armed, at); return nil }}
		for _, at := range test.set {
			must(0, d.set(at))(t)
		}
		if !slices.EqualFunc(armed, test.armed, time.Time.Equal) {
			t.Errorf("%s: the socket's deadline was set to %v, want %v", name, armed, test.armed)
		}
	}
}

func TestAReadContinuesWhenItsDeadlineHasMovedAway(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]time.Time{"later": time.Now().Add(late), "none": {}} {
		for _, size := range []int{1, 100} { // the first byte of a request, and what follows it
			conn, client := newConnections(t)
			must(0, errors.Join(conn.SetReadDeadline(time.Now().Add(soon)), conn.SetReadDeadline(last)))(t)
			reading := readBeside(conn, size)
			awaitMoved(t, &conn.reading)
			must(client.Write([]byte("x")))(t)
			wantEqual(t, fmt.Sprintf("%s, %d bytes", name, size), <-reading, (outcome{"x", nil}))
		}
	}
}

func TestAReadEndsAtTheDeadlineThatIsInForce(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(c *Conn) (until time.Time){
		"an earlier one was moved away": func(c *Conn) time.Time {
			until := time.Now().Add(3 * soon)
			_ = c.SetReadDeadline(time.Now().Add(soon))
			_ = c.SetReadDeadline(until)
			return until
		},
		"a later one was moved here": func(c *Conn) time.Time {
			until := time.Now().Add(soon)
			_ = c.SetDeadline(time.Now().Add(late))
			_ = c.SetReadDeadline(until)
			return until
		},
		"an earlier one has passed": func(c *Conn) time.Time {
			_ = c.SetReadDeadline(time.Unix(1, 0))
			until := time.Now().Add(soon)
			_ = c.SetReadDeadline(until)
			return until
		},
	} {
		for _, size := range []int{1, 100} {
			conn, _ := newConnections(t)
			until := set(conn)
			_, err := conn.Read(make([]byte, size))
			if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().Before(until) {
				t.Errorf("%s: %v, %v before the deadline", name, err, time.Until(until))
			}
		}
	}
}

func TestAWaitingReadEndsWhenItsDeadlineMovesIntoThePast(t *testing.T) {
	t.Parallel()
	conn, _ := newConnections(t)
	must(0, errors.Join(conn.SetReadDeadline(time.Now().Add(soon)), conn.SetReadDeadline(time.Now().Add(late))))(t)
	reading := readBeside(conn, 100)
	awaitMoved(t, &conn.reading) // so that it waits
	must(0, conn.SetReadDeadline(time.Unix(1, 0)))(t)
	if got := <-reading; !errors.Is(got.err, os.ErrDeadlineExceeded) {
		t.Error(got.err)
	}
}
