package redisstore

import (
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
	suspended     atomic.Pointer[suspensions]
	subscriptions subscriptions
	usage         *usage
	refusals      *creationRefusals
	closed        chan struct{}
	close         sync.Once
}
