package faults

import (
	"math/rand/v2"
	"testing"

	"remit/internal/redisproc"
)

// With appendfsync always no acknowledged write is lost, whenever Redis is killed.
func TestRedisKilledAtRandomMomentsLosesNothing(t *testing.T) {
	t.Parallel()
	redis, s := onRedis(t, redisproc.Config{Fsync: "always"}, Setup{})
	for range rounds(3) {
		s.AwaitAcknowledged(20 + rand.IntN(200))
		redis.Kill()
		redis.Start()
		s.AwaitRecovery()
	}
	s.AwaitAcknowledged(100)
	s.Finish()
}
