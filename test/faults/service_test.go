//go:build long

package faults

import (
	"math/rand/v2"
	"testing"

	"remit/internal/redisproc"
)

// Callers repeat the calls of a killed instance at the other one with the same key, and each takes effect once.
func TestKilledInstanceChargesNothingTwice(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t, redisproc.Config{}, Setup{})
	for n := range rounds(3) {
		s.AwaitAcknowledged(20 + rand.IntN(100))
		s.Instances[n%2].Kill()
		s.AwaitRecovery() // the other one goes on
		s.AwaitAcknowledged(50)
		s.Restart(n % 2)
	}
	s.AwaitAcknowledged(100)
	s.Finish()
}
