package conn

import (
	"errors"
	"os"
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
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		d.mu.Lock()
		moved := d.armed.Equal(d.wanted)
		d.mu.Unlock()
		if moved {
			return
		}
	}
	t.Fatal("the earlier deadline passed without an effect")
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
			if err := d.set(at); err != nil {
				t.Fatal(err)
			}
		}
		if len(armed) != len(test.armed) {
			t.Errorf("%s: the socket's deadline was set to %v, want %v", name, armed, test.armed)
			continue
		}
		for i := range armed {
			if !armed[i].Equal(test.armed[i]) {
				t.Errorf("%s: the socket's deadline was set to %v, want %v", name, armed, test.armed)
			}
		}
	}
}

func TestAReadContinuesWhenItsDeadlineHasMovedAway(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]time.Time{"later": time.Now().Add(late), "none": {}} {
		for _, size := range []int{1, 100} { // the first byte of a request, and what follows it
			conn, client := newConnections(t)
			errs := errors.Join(conn.SetReadDeadline(time.Now().Add(soon)), conn.SetReadDeadline(last))
			got := make(chan string, 1)
			go func() {
				buffer := make([]byte, size)
				n, err := conn.Read(buffer)
				got <- string(buffer[:n]) + errorText(err)
			}()
			awaitMoved(t, &conn.reading)
			if _, err := client.Write([]byte("x")); err != nil || errs != nil {
				t.Fatal(err, errs)
			}
			if text := <-got; text != "x" {
				t.Errorf("%s, %d bytes: %q", name, size, text)
			}
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
	errs := errors.Join(conn.SetReadDeadline(time.Now().Add(soon)), conn.SetReadDeadline(time.Now().Add(late)))
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 100))
		ended <- err
	}()
	awaitMoved(t, &conn.reading) // so that it waits
	if err := errors.Join(errs, conn.SetReadDeadline(time.Unix(1, 0))); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
