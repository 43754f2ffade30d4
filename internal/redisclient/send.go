package redisclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// send sends a command to the server that has its first key, once, and returns when it is answered, the deadline is over
// or ctx ends.
func (c *Client) send(ctx context.Context, deadline time.Time, cmd *Command, sent unretriedCmd) error {
	cmd.bounds = bounds{ctx, deadline}
	server, err := c.serverOf(&cmd.bounds, cmd.firstKey())
	switch {
	case err == nil:
	case !time.Now().Before(deadline):
		return errTooLate
	case cmd.confirm:
		return fmt.Errorf("%w: %w", errNoServer, err)
	default:
		return c.sendByKey(cmd, sent) // go-redis knows what to do, or what to say
	}
	p := c.pipeliners.of(server)
	if cmd.confirm {
		p = p.confirmed
	}
	defer p.inFlight.Add(-1)
	if p.inFlight.Add(1) <= unsharedCalls && !p.stalled.Load() {
		err = p.sendAlone(cmd, sent)
	} else {
		err = p.share(cmd, sent)
	}
	if _, isCluster := c.redis.(*redis.ClusterClient); !isCluster || !movedElsewhere(err) && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	if cmd.confirm {
		return c.confirmElsewhere(&cmd.bounds, cmd.firstKey(), sent, err)
	}
	return c.sendByKey(cmd, sent)
}

// sendByKey lets go-redis find the server and follow redirections. It is only for commands that have not run: left to itself,
// go-redis also runs a script again that answered READONLY, whatever its command says.
func (c *Client) sendByKey(cmd *Command, sent unretriedCmd) error {
	cmd.script.written.Store(false)
	cmd.showKey()
	return c.redis.Process(&cmd.bounds, sent)
}

// bounds is a context with a deadline and no timer: go-redis sets the deadline on its connection, and bounds by times of its
// own what goes before (dialTimeout, poolTimeout).
type bounds struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (b *bounds) Deadline() (time.Time, bool) { return b.deadline, true }
