package conn

import "time"

// StopAccepting wakes the listeners, which accept the connections that are already established and then end.
func (s *Set) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for _, l := range s.listeners {
		l.wake()
	}
}

// wake ends the wait for a connection, and every later one.
func (l *accepting) wake() {
	if timed, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || timed.SetDeadline(time.Unix(1, 0)) != nil {
		_ = l.Close()
	}
}

// CloseIdle wakes every connection that waits for a request: it reads one that has arrived, and otherwise ends. Opaque
// connections cannot be woken; CloseIdle closes those that never sent a byte and leaves the others to the HTTP server. It
// spares connections younger than grace that have sent nothing, because their first request may be in transit.
//
// It returns how many listeners, young connections and connections that can be woken are still open. Call it after
// StopAccepting, until that is 0.
func (s *Set) CloseIdle(grace time.Duration) (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open = len(s.listeners)
	for c := range s.open {
		switch {
		case !c.received.Load() && time.Since(c.accepted) < grace:
			open++
		case c.ahead != nil:
			open++
			c.wake()
		case !c.received.Load():
			c.Abort()
		}
	}
	return open
}
