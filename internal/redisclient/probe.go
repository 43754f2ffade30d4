package redisclient

import (
	"bufio"
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	probeLifetime = time.Minute
	// probeDraws is how many cells are tried until one is on the primary to be written: even one with a hundredth of the slots
	// is missed only once in 30,000 times.
	probeDraws = 1024
)

// Probe writes a key that means nothing and soon expires to a primary that ForEachPrimary found. A primary of a cluster that
// has no slots yet only has to reply. Its error is for NotReady.
func (c *Client) Probe(ctx context.Context, primary *redis.Client) error {
	cluster, isCluster := c.redis.(*redis.ClusterClient)
	if !isCluster {
		return c.probe(ctx, anyCell())
	}
	for range probeDraws {
		cell := anyCell()
		if owner, err := cluster.MasterForKey(ctx, c.keys.probe(cell)); err == nil && owner == primary {
			return c.probe(ctx, cell) // which follows a slot that has just moved
		}
	}
	return primary.Ping(ctx).Err()
}

func (c *Client) probe(ctx context.Context, cell uint16) error {
	return c.redis.Set(ctx, c.keys.probe(cell), 1, probeLifetime).Err()
}

func anyCell() uint16 { return uint16(rand.Uint32()) }

// InfoFields are the fields of a section of INFO.
type InfoFields map[string]string

// Number returns the value of a field that is a whole number, else 0.
func (i InfoFields) Number(name string) int64 {
	n, err := strconv.ParseInt(i[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Info returns the fields of a section of INFO, none if the server does not give it: an in-memory stand-in, or a user without
// the permission.
func Info(ctx context.Context, server redis.Cmdable, section string) InfoFields {
	fields := InfoFields{}
	lines := bufio.NewScanner(strings.NewReader(server.Info(ctx, section).Val()))
	for lines.Scan() {
		if name, value, found := strings.Cut(strings.TrimSpace(lines.Text()), ":"); found {
			fields[name] = value
		}
	}
	return fields
}
