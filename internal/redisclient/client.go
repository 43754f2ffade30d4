package redisclient

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
)

// Config says where Redis is and what the client may rely on.
type Config struct {
	// URL is redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://; see parseURL.
	URL string
	// Prefix goes before the few keys that the client itself writes.
	Prefix string
	// Durability is when a write is acknowledged. "" means Local.
	Durability Durability
	// MarkWrite writes its one key with a TTL in ms. The client runs it before each WAIT, so Replicated durability needs it.
	MarkWrite *Script
	// Refusals gives the errors for the scripts' reply codes.
	Refusals Refusals
	// Watch sees the calls of watched scripts.
	Watch Watch
	// Tracer makes a span of each round trip to Redis within a request that is traced. Nil: there are none.
	Tracer trace.Tracer
}

// CallTimeout bounds each call: waiting for a connection, writing, reading and repeating together.
const CallTimeout = 3 * time.Second

const (
	dialTimeout = time.Second
	poolTimeout = time.Second
	ioTimeout   = 2 * time.Second

	poolSize         = 64 // connections to each server
	pipelinePoolSize = 10 // further ones, which go-redis has for pipelines

	// ConnectionsPerServer is how many connections a client opens to each server at the most: those, and the one that
	// monitors its role.
	ConnectionsPerServer = poolSize + pipelinePoolSize + 1
)

// Client is a client of one Redis, Sentinel-led Redis or Redis Cluster. It is safe for concurrent use.
type Client struct {
	config     Config
	keys       keyspace
	redis      redis.UniversalClient
	conns      connections
	role       roleMonitor
	pipeliners pipeliners
	pools      pools
	lists      semaphore // of pipelines that read many objects; see ReadAll
	turns      semaphore // of operations that read with many calls; see Turn
	metrics    *callMetrics
	underWay   atomic.Int64 // calls of watched scripts
}

// Redis returns the underlying client, for commands that need neither a fair share, nor metrics, nor confirmation. Its errors
// are for Classify.
func (c *Client) Redis() redis.UniversalClient { return c.redis }

// ForEachPrimary calls visit for each primary: of a cluster for all at once, else for the one server.
func (c *Client) ForEachPrimary(ctx context.Context, visit func(context.Context, *redis.Client) error) error {
	switch client := c.redis.(type) {
	case *redis.ClusterClient:
		return client.ForEachMaster(ctx, visit)
	case *redis.Client:
		return visit(ctx, client)
	}
	return errNoServer
}

// serverOf returns the server that has the key.
func (c *Client) serverOf(ctx context.Context, key string) (*redis.Client, error) {
	if cluster, ok := c.redis.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return c.redis.(*redis.Client), nil
}

// confirms says whether what a script of this access writes must be confirmed by a replica.
func (c *Client) confirms(a Access) bool { return a == Writes && c.config.Durability == Replicated }

// Classify turns an error of Redis or of the connection to it into ErrUnavailable or ErrOutcomeUnknown. It returns nil for nil.
func (c *Client) Classify(err error, a Access) error {
	c.Suspect(err)
	return classify(err, a)
}

// Suspect reacts to an error that shows that another server may be the primary now. go-redis reloads the state of a cluster
// when a node says that a slot has moved, but a node that is gone says nothing, and the state lasts a minute.
func (c *Client) Suspect(err error) {
	switch cluster, isCluster := c.redis.(*redis.ClusterClient); {
	case err == nil:
	case redis.HasErrorPrefix(err, "READONLY"):
		c.conns.retire()
	case isCluster && !isReply(err) && !isShed(err):
		cluster.ReloadState(context.Background()) // soon, and not more often than every 200 ms
	}
}
