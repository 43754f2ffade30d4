package redisclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// maxRedirects is how often a write follows its key from one node of a cluster to another.
const maxRedirects = 3

// confirmerOf returns what confirms the writes on a server, nil if they need no confirmation.
func (c *Client) confirmerOf(server *redis.Client) *confirmer {
	if !c.confirms(Writes) {
		return nil
	}
	return c.pipeliners.of(server).confirmed.confirms
}

// writeConfirmed sends a command that is no script and writes the key, and waits for a replica.
func (c *Client) writeConfirmed(ctx *bounds, key string, cmd redis.Cmder) error {
	server, err := c.serverOf(ctx, key)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoServer, err)
	}
	err = c.confirmerOf(server).send(ctx, server, key, cmd, false)
	return c.confirmElsewhere(ctx, key, cmd, err)
}

// confirmElsewhere sends a command, which a node of a cluster did not run, to the node that has its key. go-redis does that
// only for what may go to any connection of the other node, while a WAIT must follow its write on the same.
func (c *Client) confirmElsewhere(ctx *bounds, key string, cmd redis.Cmder, err error) error {
	cluster, isCluster := c.redis.(*redis.ClusterClient)
	for redirects := 0; isCluster && redirects < maxRedirects; redirects++ {
		var server *redis.Client
		switch {
		case movedElsewhere(err):
			server = serverAt(ctx, cluster, err)
		case errors.Is(err, redis.ErrClosed): // the node has left
			server, _ = cluster.MasterForKey(ctx, key)
		}
		if server == nil {
			return err
		}
		asking := redis.HasErrorPrefix(err, "ASK")
		cmd.SetErr(nil) // go-redis leaves a command its error when a later answer is lost: it would seem not to have run
		err = c.confirmerOf(server).send(ctx, server, key, cmd, asking)
	}
	return err
}

// serverAt returns the primary that MOVED or ASK names, or nil.
func serverAt(ctx context.Context, cluster *redis.ClusterClient, redirection error) *redis.Client {
	words := strings.Fields(redirection.Error())
	var mu sync.Mutex
	var named *redis.Client
	_ = cluster.ForEachMaster(ctx, func(_ context.Context, primary *redis.Client) error { // reads the cluster's state again
		mu.Lock()
		defer mu.Unlock()
		if primary.Options().Addr == words[len(words)-1] {
			named = primary
		}
		return nil
	})
	return named
}
