package conn

import "testing"

// It is counted until its last byte is read, and then no more, however often it is closed.
func TestAConnectionIsCountedUntilItIsClosed(t *testing.T) {
	t.Parallel()
	set := newSet()
	accepted, _ := newConnectionsOf(t, set)
	for _, want := range []int{1, 0, 0} {
		if set.counted != want {
			t.Errorf("%d are counted, want %d", set.counted, want)
		}
		_ = accepted.Close()
	}
}
