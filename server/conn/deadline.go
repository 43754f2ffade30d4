package conn

import (
	"errors"
	"os"
	"sync"
	"time"
)

// deadline is a connection's deadline for reads. An HTTP server moves it twice with every request, mostly further away, and
// each move costs a lock in the runtime and a timer. So deadline leaves a timer that fires too early where it is. When that
// timer fires, the read continues with the deadline that is in force by then; see extended.
type deadline struct {
	socket func(time.Time) error // sets the socket's own deadline

	mu     sync.Mutex
	wanted time.Time // zero for none
	armed  time.Time // the socket's own: the one wanted, or earlier; zero for none
}

// set moves the deadline. Like that of net.Conn it is also in force for a read that is waiting.
func (d *deadline) set(wanted time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = wanted
	if !d.armed.IsZero() && (wanted.IsZero() || !wanted.Before(d.armed)) {
		return nil
	}
	return d.arm()
}

func (d *deadline) arm() error {
	d.armed = d.wanted
	return d.socket(d.armed)
}

// extended says whether a read must continue, because it failed at a time that was the deadline once and is not any
// more. It sets the socket's deadline anew for that.
func (d *deadline) extended(err error) bool {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.wanted.IsZero() && !time.Now().Before(d.wanted) {
		return false
	}
	return d.arm() == nil
}
