package redisstore

import (
	"context"
	"strconv"
	"time"

	"remit/internal/redisclient"
)

// Open returns a store on the Redis at cfg.URL. It connects on first use, so an unreachable server is ErrUnavailable then.
// Open itself returns an error if the URL or a quota is invalid. Close the store after use.
func Open(cfg Config) (*Store, error) {
	if err := checkQuotas(cfg.Quotas); err != nil {
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
	var own *feeds
	eventsKept := cfg.EventsKept
	if cfg.KeepsFeeds {
		own = newFeeds(cfg)
		eventsKept *= unfedFactor // the leader of the feed trims what the feed has
	}
	client, err := redisclient.Open(redisclient.Config{
		URL: cfg.URL, Prefix: cfg.Prefix, Durability: cfg.Durability, MarkWrite: markWrite, Refusals: refusals, Tracer: cfg.Tracer,
		Watch: own.watch(),
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: client, keys: keyspace{cfg.Prefix}, config: cfg, eventsKept: strconv.Itoa(eventsKept), proven: newProvenKeys(), owners: newOwners(),
		usage: newUsage(cfg), reports: newReports(), refusals: newCreationRefusals(), expiredLeases: newExpiredLeases(), expiredHolds: newExpiredHolds(), closed: make(chan struct{}),
	}
	s.usage.syncing.start, s.usage.syncing.hurried = s.keepUsage, make(chan struct{}, 1)
	if own != nil {
		s.feeds = own
		own.start(client)
	}
	return s, nil
}

var markWrite = newScript("kernel/mark_write", bestEffort)

// Close wakes the callers that wait for events, sends the usage that Redis does not know yet for at most finishTime, and
// closes every connection.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
		if s.feeds != nil {
			s.feeds.finish()
		}
		s.usage.syncing.finish()
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
