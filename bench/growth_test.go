package bench

import (
	"fmt"
	"testing"

	"remit/internal/redisproc"
)

const (
	crowdAgents = 100
	fewSessions = 1000
	growthRound = 5000 // charges
	listedPages = 2000
)

// BenchmarkGrowth charges random sessions of ten thousand, a hundred thousand and a million, compared with a thousand, and
// lists pages of the million.
func BenchmarkGrowth(b *testing.B) {
	onlyLong(b)
	few, many := startCrowd(b), startCrowd(b)
	few.growTo(b, fewSessions)
	floor := timed("1000-sessions", connect(b, few.addr, connections, few.charges).run)
	over := timed("charge", connect(b, many.addr, connections, many.charges).run)
	for _, sessions := range []int{10_000, 100_000, 1_000_000} {
		many.growTo(b, sessions)
		b.Run(fmt.Sprintf("charge/sessions=%d", sessions), func(b *testing.B) {
			compareRounds(b, growthRound, over, floor)
		})
	}
	for _, limit := range []int{50, 200} {
		b.Run(fmt.Sprintf("list/limit=%d", limit), func(b *testing.B) {
			latencies := must(connect(b, many.addr, 1, func() turns { return many.pages(limit) }).run(listedPages))(b)
			reportAll(b, map[string]float64{"p99-ms": quantile(0.99, latencies).Seconds() * 1e3, "p50-ms": median(latencies).Seconds() * 1e3})
		})
	}
}

// startCrowd starts a service with agents. Its Redis does not rewrite its append-only file, because loading a million sessions
// would start a rewrite in the middle of a round.
func startCrowd(tb testing.TB) *crowd {
	tb.Helper()
	s := startServiceOn(tb, redisproc.Config{Dir: tb.TempDir(), Args: []string{"--auto-aof-rewrite-percentage", "0"}}, observers{})
	return newCrowd(tb, s, crowdAgents)
}
