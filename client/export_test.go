package client

import "time"

// SetWallClock replaces the clock that advances while the machine is suspended.
func SetWallClock(a *Agent, clock func() time.Time) { a.caller.tokens.wall = clock }

// Kill ends a lease as the end of its process does: it settles nothing.
func (l *Lease) Kill() {
	l.mu.Lock()
	l.closed = true
	if g := l.current.Swap(nil); g != nil {
		g.freeze()
	}
	l.announce()
	l.mu.Unlock()
	l.quit.Do(func() { close(l.stop) })
	l.cancel()
	<-l.ended
}

// AssertionBy is the assertion that the key signs now.
func AssertionBy(k *Key, id, audience string) (string, error) {
	return k.assertion(id, audience, time.Now())
}
