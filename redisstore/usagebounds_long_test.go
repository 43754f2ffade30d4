//go:build long

package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisproc"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
	"remit/test/redistest"
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

// A report of 100,000 sessions that were never folded, and one when all are, beside the charges of another organization. The second is
// made up to three times, because what else the machine does must not decide. The first cannot be made again: then all are folded.
func TestAReportOf100000SessionsIsExactAndOthersDoNotFeelIt(t *testing.T) {
	s := openStore(t, Config{}, redistest.StartRedis(t, redisproc.Config{}).URL(), nil)
	const sessions = 100_001
	w, other := newTenant(t, s, NewSession{MaxActions: 10, MaxValue: 100}), newTenant(t, s, NewSession{MaxActions: 1e9, MaxValue: 1e12})
	w.chargeTyped(t, s, typed("a", 1, 2), typed("b", 1, 3), typed("", 1, 1))
	w.manySessions(t, s, sessions-1)
	idle := make(chan struct{})
	close(idle)
	other.chargeUntil(t, s, idle)
	// besideReport returns how many times as long the median charge takes beside a report.
	besideReport := func(what string) float64 {
		alone, done := other.chargeUntil(t, s, idle), make(chan struct{})
		go func() {
			defer close(done)
			began := time.Now()
			lines, err := s.UsageReport(t.Context(), w.key, everyDay())
			for try := 1; (errors.Is(err, records.ErrReportTooLong) || errors.Is(err, ErrUnavailable)) && try < 5; try++ {
				t.Logf("%s, after %v: %v", what, time.Since(began), err) // what a slow machine has folded in its time stays folded
				lines, err = s.UsageReport(t.Context(), w.key, everyDay())
			}
			t.Logf("%s took %v", what, time.Since(began))
			if err != nil || !slices.Equal(lines, []records.UsageLine{total(3*sessions, 6*sessions)}) {
				t.Errorf("%s is %+v, %v", what, lines, err)
			}
		}()
		beside := other.chargeUntil(t, s, done)
		for _, percent := range []int{50, 99} {
			t.Logf("%s: the %dth percentile of charges of another organization %v alone, %v beside it", what, percent,
				alone[len(alone)*percent/100], beside[len(beside)*percent/100])
		}
		return float64(beside[len(beside)/2]) / float64(alone[len(alone)/2])
	}
	const most = 3
	if ratio := besideReport("the first report"); ratio > most {
		t.Errorf("beside the first report a charge takes %.1f times as long", ratio)
	}
	var ratio float64
	for range 3 {
		if ratio = besideReport("the next one"); ratio <= most {
			return
		}
	}
	t.Errorf("beside the next report a charge takes %.1f times as long", ratio)
}
