package redisstore

import (
	"context"
	"time"

	"remit/internal/redisclient"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

// Open returns a store on the Redis at cfg.URL. It connects on first use, so an unreachable server is ErrUnavailable then.
// Open itself returns an error if the URL or a quota is invalid. Close the store after use.
func Open(cfg Config) (*Store, error) {
	if err := kernel.CheckQuotas(cfg.Quotas); err != nil {
		return nil, err
	}
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	cfg.Retention = orDefault(cfg.Retention, defaultRetention)
	cfg.RefreshLifetime = orDefault(cfg.RefreshLifetime, defaultRefreshLifetime)
	cfg.FamilyLifetime = orDefault(cfg.FamilyLifetime, defaultFamilyLifetime)
	cfg.AccessLifetime = orDefault(cfg.AccessLifetime, defaultAccessLifetime)
	cfg.EventsKept = orDefault(cfg.EventsKept, defaultEventsKept)
	cfg.Durability = orDefault(cfg.Durability, Local)
	cfg.UsageKept = orDefault(cfg.UsageKept, defaultUsageKept)
	cfg.UsageEvery = orDefault(cfg.UsageEvery, defaultUsageEvery)
	trailKept := cfg.EventsKept
	var own *feed.Feeds
	if cfg.KeepsFeeds {
		own = feed.New(cfg.feeds())
		trailKept *= feed.UnfedFactor // the leader of the feed trims what the feed has
	}
	client, err := redisclient.Open(redisclient.Config{
		URL: cfg.URL, Prefix: cfg.Prefix, Durability: cfg.Durability, MarkWrite: markWrite, Refusals: allRefusals(), Tracer: cfg.Tracer,
		Watch: own.Watch(),
	})
	if err != nil {
		return nil, err
	}
	core := kernel.New(client, kernel.Config{
		Prefix: cfg.Prefix, Quotas: cfg.Quotas, Rates: cfg.Rates, EventsKept: cfg.EventsKept, TrailKept: trailKept,
		UsageEvery: cfg.UsageEvery, FollowsSuspensions: cfg.FollowsSuspensions,
	})
	s := &Store{
		Registry: webhooks.New(core), core: core, client: client, keys: core.Keys, config: cfg,
		expiredLeases: newExpiredLeases(), expiredHolds: newExpiredHolds(),
	}
	s.Reader = records.NewReader(core, s.foldAgents)
	if own != nil {
		s.feeds = own
		own.Start(client)
	}
	return s, nil
}

var markWrite = kernel.NewScript("kernel/mark_write", bestEffort)

// Close wakes the callers that wait for events, sends the usage that Redis does not know yet for at most FinishTime, and
// closes every connection.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.core.Finish()
		if s.feeds != nil {
			s.feeds.Finish()
		}
		s.core.Settle()
	})
	return s.client.Close()
}

// Ping returns nil once Redis answers.
func (s *Store) Ping(ctx context.Context) error { return s.client.Ping(ctx) }

func orDefault[T int | time.Duration | Durability](given, standard T) T {
	var none T
	if given == none {
		return standard
	}
	return given
}

func (c Config) feeds() feed.Config {
	return feed.Config{Prefix: c.Prefix, EventsKept: c.EventsKept, Log: c.Log, Render: c.render}
}
