//go:build long

package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/money"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
	"remit/test/redistest"
	"remit/test/suite"
)

// manySessions gives the tenant so many sessions like its own.
func (w tenant) manySessions(t *testing.T, s *Store, count int) {
	t.Helper()
	rdb := peek(t, s)
	own := must(rdb.Dump(t.Context(), s.keys.Session(w.agent.ID, w.session.ID)).Result())(t)
	for range count / 1000 {
		filling := rdb.Pipeline()
		for range 1000 {
			id := NewID(w.agent.ID)
			filling.Restore(t.Context(), s.keys.Session(w.agent.ID, id), time.Hour, own)
			filling.ZAdd(t.Context(), s.keys.AgentSessions(w.agent.ID), redis.Z{Member: string(kernel.OfCell(w.agent.ID).Of(id))})
		}
		must(filling.Exec(t.Context()))(t)
	}
}

// chargeUntil charges one action after the other until done is closed, at least a thousand times, and returns how long each took, in order.
func (w tenant) chargeUntil(t *testing.T, s *Store, done <-chan struct{}) []time.Duration {
	t.Helper()
	var took []time.Duration
	for {
		began := time.Now()
		w.charge(t, s, 1, 1)
		took = append(took, time.Since(began))
		select {
		case <-done:
			if len(took) >= 1000 {
				slices.Sort(took)
				return took
			}
		default:
		}
	}
}

// A report of 100,000 sessions that were never folded, and one when all are, beside the charges of another organization. With the race
// detector a tenth of them.
func TestAReportOf100000SessionsIsExactAndOthersDoNotFeelIt(t *testing.T) {
	s := openStore(t, Config{}, redistest.StartRedis(t, redisproc.Config{}).URL(), nil)
	sessions := 100_001
	if suite.RaceDetector {
		sessions = 10_001
	}
	w, other := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100}), newTenant(t, s, NewSession{MaxActions: 1e9, MaxValue: 1e12})
	w.chargeTyped(t, s, typed("a", 1, 2), typed("b", 1, 3), typed("", 1, 1))
	w.manySessions(t, s, sessions-1)
	idle := make(chan struct{})
	close(idle)
	other.chargeUntil(t, s, idle)
	for _, what := range []string{"the first report", "the next one"} {
		alone, done, began := other.chargeUntil(t, s, idle), make(chan struct{}), time.Now()
		go func() {
			defer close(done)
			lines, err := s.UsageReport(t.Context(), w.key, everyDay())
			for try := 1; errors.Is(err, records.ErrReportTooLong) && try < 5; try++ { // what a slow machine has folded stays folded
				t.Logf("%s is asked for again after %v", what, time.Since(began))
				lines, err = s.UsageReport(t.Context(), w.key, everyDay())
			}
			if err != nil || !slices.Equal(lines, []records.UsageLine{total(int64(3*sessions), money.MicroUSD(6*sessions))}) {
				t.Errorf("%s is %+v, %v", what, lines, err)
			}
			t.Logf("%s took %v", what, time.Since(began))
		}()
		beside := other.chargeUntil(t, s, done)
		for _, percent := range []int{50, 99} {
			a, b := alone[len(alone)*percent/100], beside[len(beside)*percent/100]
			ratio := float64(b) / float64(a)
			t.Logf("%s: the %dth percentile of charges of another organization %v alone, %v beside it: %.2f", what, percent, a, b, ratio)
			if percent == 50 && ratio > 3 {
				t.Errorf("beside %s a charge takes %.1f times as long", what, ratio)
			}
		}
	}
}
