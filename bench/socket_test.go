package bench

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// connections is the default number of connections.
const connections = 256

// BenchmarkSocket measures the paths from a client's socket to Redis and back.
func BenchmarkSocket(b *testing.B) {
	for _, p := range paths {
		b.Run(p.name, func(b *testing.B) {
			s := startProgram(b)
			at := []int{connections}
			if p.name == charging.name {
				at = []int{1, connections}
			}
			for _, connections := range at {
				b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
					over, floors := overSocket(b, s, p, connections)
					if _, err := over.run(connections); err != nil { // loads merged scripts into Redis, which sends them twice
						b.Fatal(err)
					}
					before := s.mergedSoFar(b)
					compare(b, over, floors...)
					after := s.mergedSoFar(b)
					calls, scripts := after.calls-before.calls, after.scripts-before.scripts
					b.ReportMetric(calls/max(scripts, 1), "calls/merged-script")
					b.ReportMetric(100*calls/float64(rounds*max(b.N/rounds, 1)), "merged-%") // of the operations
				})
			}
		})
	}
}

// overSocket returns a path over that many connections, and its floors.
func overSocket(tb testing.TB, s *service, p path, connections int) (over contender, floors []contender) {
	tb.Helper()
	a := s.newAgent(tb)
	each := p.prepare(tb, s, a)
	calls := connect(tb, s.addr, connections, each)
	greet(tb, calls)
	floors = append(floors, bare(tb, calls[0].size, connections))
	if p.scripts != nil {
		floors = append(floors, plainRedis(s.redis, p.scripts(tb, s, a, each(), connections)))
	}
	if p.name == charging.name && connections > 1 && s.redisPID != 0 {
		floors = append(floors, s.redisBenchmark(tb, 1, s.scriptOf(tb, a, each())), s.emptyScript(tb))
	}
	return timed(p.name, calls.run).beside(s.pid, s.redisPID), floors
}

// BenchmarkBatch sends batches of a hundred charges, of one session and of ten. An operation is a charge.
func BenchmarkBatch(b *testing.B) {
	for _, sessions := range []int{1, 10} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			over, floor := batches(b, startProgram(b), sessions, connections)
			compare(b, over, floor)
		})
	}
}

// batches makes ten times as many charges as requested, so that a round has enough calls.
func batches(tb testing.TB, s *service, sessions, connections int) (over, floor contender) {
	tb.Helper()
	a := s.newAgent(tb)
	calls := connect(tb, s.addr, connections, same(batchOf(tb, s, a, sessions)))
	over = contender{name: "batch", server: s.pid, redis: s.redisPID, run: func(n int) (round, error) {
		took, err := timed("", calls.run).run(max(10*n/batchSize, 1))
		took.rate *= batchSize
		took.operations *= batchSize
		return took, err
	}}
	return over, s.redisBenchmark(tb, 64, s.scriptOf(tb, a, same(a.charge(a.session))()))
}

// BenchmarkOneConnection measures the latency of charges over one connection to the service in this process. The floor is the
// same script called by go-redis from this process. So both have the same two processes, and their ratio is the service's own
// part: beside the built program it would mostly be what it takes to wake a third process.
func BenchmarkOneConnection(b *testing.B) {
	b.Run("charge", func(b *testing.B) {
		over, floors := overSocket(b, startService(b), charging, 1)
		compare(b, over, floors...)
	})
}

// merging is what the program counts about calls that it sends to Redis in one script.
type merging struct{ calls, scripts float64 }

func (s *service) mergedSoFar(tb testing.TB) merging {
	tb.Helper()
	_, metrics := s.send(tb, http.MethodGet, "/metrics", "")
	number := func(name string) float64 {
		_, rest, _ := strings.Cut(string(metrics), "\nremit_redis_merged_calls_"+name+" ")
		text, _, _ := strings.Cut(rest, "\n")
		return must(strconv.ParseFloat(text, 64))(tb)
	}
	return merging{calls: number("sum"), scripts: number("count")}
}
