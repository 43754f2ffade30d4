// Package redisstore stores all of Remit's data in Redis.
//
// Each operation is one script of package lua. It validates first and then writes, so it happens completely or not at all.
// Package internal/kernel has what all operations share: keys, scripts, callers, idempotency keys, quotas. Package redisclient
// sends scripts, and never repeats one that may have run. Times come from Redis's clock, money is whole micro-dollars. Readers derive a
// status from stored events (an agent's revocation, an expiry). What time brings is also recorded soon, by itself (due.go); nothing waits for
// that to be right.
//
// Errors are ErrUnavailable (nothing happened), ErrOutcomeUnknown (a write may have happened), or one of the refusals.
package redisstore

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/redisstore/internal/feed"
	"remit/redisstore/internal/kernel"
	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

// Config says where the store is and how long it stores data.
type Config struct {
	// URL is redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://.
	URL string
	// Prefix precedes every key, so that a Redis user's permissions can be limited to this service's keys. "" means
	// "remit:".
	Prefix string
	// Retention is how long a session or a transaction stays readable after it ends. 0 means 7 days.
	Retention time.Duration
	// RefreshGrace is how long a spent refresh token still returns its successor, from 0 to 30 minutes.
	RefreshGrace time.Duration
	// RefreshLifetime is how long a refresh token is valid. 0 means 7 days.
	RefreshLifetime time.Duration
	// FamilyLifetime is how long a family lives, however often it is refreshed. 0 means 90 days.
	FamilyLifetime time.Duration
	// AccessLifetime is how long an access token is valid. 0 means 1 hour.
	AccessLifetime time.Duration
	// Durability is when a write is acknowledged. "" means Local.
	Durability Durability
	// EventsKept is how many events an agent's audit trail stores, and at most 100 more. 0 means 1000. Events that are not in the
	// feed of the agent's organization yet stay, up to ten times as many.
	EventsKept int
	// UsageKept is how long what an agent used on a day stays readable: whole days. 0 means 400 days.
	UsageKept time.Duration
	// Quotas are the default quotas by the names of ParseQuotas, for organizations without quotas of their own. 0 is
	// unbounded. Quotas that it does not name have their built-in defaults.
	Quotas map[string]int64
	// Rates bound how fast organizations and agents may create objects. The zero value is unbounded.
	Rates Rates
	// UsageEvery is the interval at which the store sends the usage of organizations to Redis. 0 means half a second.
	UsageEvery time.Duration
	// FollowsSuspensions says that the owner calls ReadSuspensions regularly. Until the first success, operations with an API
	// key return ErrUnavailable.
	FollowsSuspensions bool
	// Tracer makes a span of each round trip to Redis in a traced request. Nil makes none.
	Tracer trace.Tracer
	// Log logs panics in the loops of feeds. Nil logs none.
	Log *slog.Logger
	// KeepsFeeds says that the store appends the events of agents to the feeds of their organizations.
	KeepsFeeds bool
	// RecordsDue says that the store records what time brings without being asked, by what the feeds know. It needs KeepsFeeds.
	RecordsDue bool

	render func(event.InFeed) ([]byte, error) // for tests; nil means event.InFeed.JSON
}

const (
	defaultPrefix          = "remit:"
	defaultRetention       = 7 * 24 * time.Hour
	defaultRefreshLifetime = 7 * 24 * time.Hour
	defaultFamilyLifetime  = 90 * 24 * time.Hour
	defaultAccessLifetime  = time.Hour
	defaultEventsKept      = 1000
	defaultUsageKept       = 400 * 24 * time.Hour
	defaultUsageEvery      = 500 * time.Millisecond
)

// Store stores all of Remit's data in one Redis, Sentinel-led Redis or Redis Cluster. It is safe for concurrent use.
type Store struct {
	*records.Reader
	*webhooks.Registry
	core   *kernel.Core
	client *redisclient.Client
	keys   kernel.Keys
	config Config

	feeds         *feed.Feeds  // nil for none
	recorder      *dueRecorder // nil for none
	expiredLeases prometheus.Counter
	expiredHolds  prometheus.Counter
	skipped       skips // prunings of transactions
	close         sync.Once
}

// URL is the URL of a Redis in a flag or an environment variable; see Config.URL for its forms.
type URL string

// UnmarshalText trims white space, because a secret from a file ends with a newline.
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL(strings.TrimSpace(string(text)))
	return nil
}

// Remembered returns a copy of the token that is cheaper to use many times: it has its keys and arguments formatted.
func (s *Store) Remembered(t AccessToken) *AccessToken { return t.Remembered(s.keys) }

// Open returns a store on the Redis at cfg.URL. It connects on first use, so an unreachable server is ErrUnavailable then.
// Open itself returns an error if the URL or a quota is invalid. Close the store after use.
func Open(cfg Config) (*Store, error) {
	if err := kernel.CheckQuotas(cfg.Quotas); err != nil {
		return nil, err
	}
	if cfg.Prefix == "" {
		cfg.Prefix = defaultPrefix
	}
	cfg.Retention = cmp.Or(cfg.Retention, defaultRetention)
	cfg.RefreshLifetime = cmp.Or(cfg.RefreshLifetime, defaultRefreshLifetime)
	cfg.FamilyLifetime = cmp.Or(cfg.FamilyLifetime, defaultFamilyLifetime)
	cfg.AccessLifetime = cmp.Or(cfg.AccessLifetime, defaultAccessLifetime)
	cfg.EventsKept = cmp.Or(cfg.EventsKept, defaultEventsKept)
	cfg.Durability = cmp.Or(cfg.Durability, Local)
	cfg.UsageKept = cmp.Or(cfg.UsageKept, defaultUsageKept)
	cfg.UsageEvery = cmp.Or(cfg.UsageEvery, defaultUsageEvery)
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
	if own != nil && cfg.RecordsDue {
		s.recorder = s.record()
	}
	return s, nil
}

var markWrite = kernel.NewScript("kernel/mark_write", bestEffort)

// Close wakes the callers that wait for events, sends the usage that Redis does not know yet for at most FinishTime, and
// closes every connection.
func (s *Store) Close() error {
	s.close.Do(func() {
		if s.recorder != nil {
			s.recorder.close()
		}
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

func (c Config) feeds() feed.Config {
	return feed.Config{Prefix: c.Prefix, EventsKept: c.EventsKept, Log: c.Log, NotesDue: c.RecordsDue, Render: c.render}
}

func newExpiredLeases() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "remit_leases_expired_total",
		Help: "Leases that this instance observed expired before they were settled. They count as spent in full.",
	})
}

func newExpiredHolds() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "remit_holds_expired_total",
		Help: "Holds that this instance released because their time was up before they were settled.",
	})
}

// Describe implements prometheus.Collector.
func (s *Store) Describe(to chan<- *prometheus.Desc) {
	if s.core == nil { // it was not opened
		return
	}
	s.core.Describe(to)
	s.expiredLeases.Describe(to)
	s.expiredHolds.Describe(to)
	if s.feeds != nil {
		s.feeds.Describe(to)
	}
	if s.recorder != nil {
		to <- dueLag
	}
}

// Collect implements prometheus.Collector. It sends nothing to Redis.
func (s *Store) Collect(to chan<- prometheus.Metric) {
	if s.core == nil {
		return
	}
	s.core.Collect(to)
	s.expiredLeases.Collect(to)
	s.expiredHolds.Collect(to)
	if s.feeds != nil {
		s.feeds.Collect(to)
	}
	if s.recorder != nil {
		to <- prometheus.MustNewConstMetric(dueLag, prometheus.GaugeValue, s.recorder.lag().Seconds())
	}
}
