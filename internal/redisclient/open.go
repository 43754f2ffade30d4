package redisclient

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns a client of the Redis at cfg.URL. It connects when first used: an unreachable server is ErrUnavailable then,
// not an error here. It returns an error when the URL cannot be understood. Close it after use.
func Open(cfg Config) (*Client, error) {
	options, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Durability == "" {
		cfg.Durability = Local
	}
	c := &Client{config: cfg, keys: keyspace{cfg.Prefix}, metrics: newCallMetrics()}
	c.pipeliners.sizes, c.pipeliners.merges = c.metrics.sharedSizes, c.metrics.mergedSizes
	c.pipeliners.cluster = options.IsClusterMode
	c.pipeliners.newConfirmer = func() *confirmer { return newConfirmer(c.keys, cfg.MarkWrite, c.Suspect) }
	c.redis = c.connect(options)
	c.pools.connect(c.redis)
	traceTrips(c.redis, cfg.Tracer)
	return c, nil
}

// Close closes every connection.
func (c *Client) Close() error {
	c.role.stop()
	return c.redis.Close()
}

// Ping returns nil once Redis answers.
func (c *Client) Ping(ctx context.Context) error {
	return c.Classify(c.redis.Ping(ctx).Err(), Reads)
}

// connect sets every bound that go-redis would otherwise choose, and turns off what it does unasked: its retries run a
// script again whose reply was lost, and its greetings log errors on servers that do not know them.
func (c *Client) connect(options *redis.UniversalOptions) redis.UniversalClient {
	options.Protocol = 2
	options.MaxRetries = -1
	options.DialTimeout = dialTimeout
	options.DialerRetries = 1
	options.Dialer = c.conns.dialer(options)
	options.ReadTimeout = ioTimeout
	options.WriteTimeout = ioTimeout
	options.ContextTimeoutEnabled = true
	options.PoolSize = poolSize
	options.MaxActiveConns = poolSize
	options.PipelinePoolSize = pipelinePoolSize
	options.PoolTimeout = poolTimeout
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c.checkRoles(options)
	if !options.IsClusterMode {
		return redis.NewUniversalClient(options)
	}
	cluster := options.Cluster()
	cluster.DisableRoutingPolicies = true // keys say where a command goes
	return redis.NewClusterClient(cluster)
}
