package redisstore

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
)

func counted(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var now dto.Metric
	mustDo(t, metric.Write(&now))
	return now.GetCounter().GetValue() + now.GetGauge().GetValue()
}

// panicking panics in the first pipeline that reads trails.
type panicking struct{ once *atomic.Bool }

func (panicking) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (panicking) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (p panicking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if slices.ContainsFunc(commands, func(c redis.Cmder) bool { return c.Name() == "xrange" }) && !p.once.Swap(true) {
			panic("a fault of the program")
		}
		return next(ctx, commands)
	}
}

// A panic costs no feed its turn or its leader, and is reported once.
func TestAPanicStopsNoFeed(t *testing.T) {
	t.Parallel()
	onMiniredis(t, Config{}, func(t *testing.T, s *Store) {
		cfg, log := s.config, &bytes.Buffer{}
		cfg.KeepsFeeds, cfg.Log = true, slog.New(slog.NewTextHandler(log, nil))
		second := must(Open(cfg))(t)
		second.client.Redis().AddHook(panicking{new(atomic.Bool)})
		w := newTenant(t, second, NewSession{MaxActions: 1})
		other := newTenant(t, second, NewSession{MaxActions: 1})
		wantFed(t, second, w.key, w.agent.ID)
		wantFed(t, second, other.key, other.agent.ID)
		panics := counted(t, second.feeds.Metrics.Panics)
		mustDo(t, second.Close())
		if said := strings.Count(log.String(), "stack="); panics != 1 || said != 1 || len(second.feeds.Turns) != 0 {
			t.Errorf("%g panics, logged %d times, %d turns are gone", panics, said, len(second.feeds.Turns))
		}
	})
}
