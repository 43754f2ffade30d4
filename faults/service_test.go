package faults

import (
	"math/rand/v2"
	"testing"

	"remit/redisproc"
)

// What an instance was at when it was killed is asked again of the other one, by the same key, and happens once.
func TestAKilledInstanceLeavesNothingDoneTwice(t *testing.T) {
	redis := StartRedis(t, redisproc.Config{})
	s := New(t, Setup{URL: redis.URL(), Servers: []string{redis.Addr}})
	for n := range rounds(3) {
		s.Acknowledged(20 + rand.IntN(100))
		s.Instances[n%2].Kill()
		s.FaultOver() // the other one goes on
		s.Acknowledged(50)
		s.Restart(n % 2)
	}
	s.Acknowledged(100)
	s.Finish()
}
