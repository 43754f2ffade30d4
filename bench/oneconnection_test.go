package bench

import "testing"

// BenchmarkOneConnection measures the latency of charges over one connection to the service in this process. The floor is the
// same script called by go-redis from this process. So both have the same two processes, and their ratio is the service's own
// part: beside the built program it would mostly be what it takes to wake a third process.
func BenchmarkOneConnection(b *testing.B) {
	b.Run("charge", func(b *testing.B) {
		over, floors := overSocket(b, startService(b), charging, 1)
		compare(b, over, floors...)
	})
}
