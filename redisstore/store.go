package redisstore

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"remit/redisclient"
)

// Config says where the store is and how long it keeps things.
type Config struct {
	// URL is redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://.
	URL string
	// Prefix goes before every key, so that a Redis user can be held to this service's own. "" means "remit:". Each
	// test uses one of its own below that.
	Prefix string
	// Retention is how long a session stays readable after it ends. 0 means 7 days.
	Retention time.Duration
	// RefreshGrace is how long a spent refresh token gets its successor again, from 0 to 30 minutes.
	RefreshGrace time.Duration
	// RefreshLifetime is how long a refresh token is good for. 0 means 7 days.
	RefreshLifetime time.Duration
	// FamilyLifetime is how long a family lives, however often it is refreshed. 0 means 90 days.
	FamilyLifetime time.Duration
	// AccessLifetime is how long an access token is good for. 0 means 1 hour.
	AccessLifetime time.Duration
	// Durability is when a write is acknowledged. "" means Local.
	Durability Durability
	// EventsKept is how many events of its audit trail an agent keeps, about: up to 100 more may stand. 0 means 1000.
	EventsKept int
	// Quotas are those of an organization that the operator has given none of its own, by the names of ParseQuotas; 0 is
	// unbounded. Those that are not named have their defaults.
	Quotas map[string]int64
	// Rates bound how fast organizations and agents may create what takes memory. The zero value bounds nothing.
	Rates Rates
	// UsageEvery is how often Redis is told what organizations have created and freed. 0 means half a second.
	UsageEvery time.Duration
	// FollowsSuspensions says that the owner calls ReadSuspensions from time to time. Until it has succeeded once, what an
	// API key asks is ErrUnavailable.
	FollowsSuspensions bool
	// Tracer makes a span of each round trip to Redis within a request that is traced. Nil: there are none.
	Tracer trace.Tracer
}

const (
	defaultPrefix          = "remit:"
	defaultRetention       = 7 * 24 * time.Hour
	defaultRefreshLifetime = 7 * 24 * time.Hour
	defaultFamilyLifetime  = 90 * 24 * time.Hour
	defaultAccessLifetime  = time.Hour
	defaultEventsKept      = 1000
	defaultUsageEvery      = 500 * time.Millisecond
)

// Store keeps everything that Remit keeps, in one Redis, Sentinel-led Redis or Redis Cluster. It is safe for concurrent use.
type Store struct {
	client     *redisclient.Client
	keys       keyspace
	config     Config
	eventsKept string // Config.EventsKept as scripts take it
	proven     provenKeys
	// suspended is nil until it is read.
	suspended atomic.Pointer[suspensions]
	watch     watch
	usage     *usage
	refusals  *creationRefusals
	closed    chan struct{}
	close     sync.Once
}

// Open returns a store on the Redis at cfg.URL. It connects when first used: an unreachable server is ErrUnavailable
// then, not an error here. It returns an error when the URL cannot be understood. Close it after use.
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
	cfg.UsageEvery = orDefault(cfg.UsageEvery, defaultUsageEvery)
	client, err := redisclient.Open(redisclient.Config{
		URL: cfg.URL, Prefix: cfg.Prefix, Durability: cfg.Durability, MarkWrite: markWrite, Refusals: refusals, Tracer: cfg.Tracer,
	})
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: client, keys: keyspace{cfg.Prefix}, config: cfg, eventsKept: strconv.Itoa(cfg.EventsKept), proven: newProvenKeys(),
		usage: newUsage(cfg), refusals: newCreationRefusals(), closed: make(chan struct{}),
	}
	s.usage.syncing.start, s.usage.syncing.hurried = s.keepUsage, make(chan struct{}, 1)
	return s, nil
}

var markWrite = newScript("mark_write", tidies)

// Close wakes the callers that wait for events, writes the usage of organizations that Redis does not know yet, and closes
// every connection.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
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
