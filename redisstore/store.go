package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.opentelemetry.io/otel/trace"
)

// Config says where the store is and how long it keeps things.
type Config struct {
	// URL is redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://; see parseURL.
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

	// Every call is bounded: connecting, waiting for a connection, writing and reading each, and all of it together.
	dialTimeout = time.Second
	poolTimeout = time.Second
	ioTimeout   = 2 * time.Second
	callTimeout = 3 * time.Second

	poolSize         = 64 // connections to each server
	pipelinePoolSize = 10 // further ones, which go-redis has for pipelines

	// ConnectionsPerServer is how many connections a store opens to each server at the most: those, and that of the watch
	// over its role.
	ConnectionsPerServer = poolSize + pipelinePoolSize + 1
)

// Store is a client of one Redis, Sentinel-led Redis or Redis Cluster. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	conns  connections
	role   roleWatch
	lanes  lanes
	pools  pools
	lists  bulk // and other readings of many objects; see readAll
	proven provenKeys
	// suspended is nil until it is read.
	suspended atomic.Pointer[suspensions]
	keys      keyspace
	config    Config
	watch     watch
	usage     *usage
	counts    *counts
	closed    chan struct{}
	close     sync.Once
}

// Open returns a store on the Redis at cfg.URL. It connects when first used: an unreachable server is ErrUnavailable
// then, not an error here. It returns an error when the URL cannot be understood. Close it after use.
func Open(cfg Config) (*Store, error) {
	options, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
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
	s := &Store{proven: newProvenKeys(), keys: keyspace{cfg.Prefix}, config: cfg, counts: newCounts(), closed: make(chan struct{})}
	s.lanes.keys, s.lanes.suspect, s.lanes.sizes = s.keys, s.suspect, s.counts.ofCalls
	s.usage = newUsage(cfg)
	s.usage.syncing.start, s.usage.syncing.hurried = s.keepUsage, make(chan struct{}, 1)
	s.client = s.connect(options)
	s.pools.connect(s.client)
	traceTrips(s.client, cfg.Tracer)
	return s, nil
}

// Close wakes whoever waits for events, tells Redis what of the organizations' usage it does not know yet, and closes every
// connection.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.closed)
		s.usage.syncing.finish()
	})
	s.role.stop()
	return s.client.Close()
}

// Ping returns nil once Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.trouble(s.client.Ping(ctx).Err(), reads)
}

func orDefault[T int | time.Duration | Durability](given, standard T) T {
	var none T
	if given == none {
		return standard
	}
	return given
}

// connect sets every bound that go-redis would otherwise choose, and turns off what it does unasked: its retries run a
// script again whose reply was lost, and its greetings log errors on servers that do not know them.
func (s *Store) connect(options *redis.UniversalOptions) redis.UniversalClient {
	options.Protocol = 2
	options.MaxRetries = -1
	options.DialTimeout = dialTimeout
	options.DialerRetries = 1
	options.Dialer = s.conns.dialer(options)
	options.ReadTimeout = ioTimeout
	options.WriteTimeout = ioTimeout
	options.ContextTimeoutEnabled = true
	options.PoolSize = poolSize
	options.MaxActiveConns = poolSize
	options.PipelinePoolSize = pipelinePoolSize
	options.PoolTimeout = poolTimeout
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	s.checkRoles(options)
	if !options.IsClusterMode {
		return redis.NewUniversalClient(options)
	}
	cluster := options.Cluster()
	cluster.DisableRoutingPolicies = true // keys say where a command goes
	return redis.NewClusterClient(cluster)
}
