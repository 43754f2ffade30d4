package redisclient

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A replica answers reads with what it last heard of, such as that a revoked agent is active. So the client reads from
// primaries alone. A node of a cluster sends callers to the primary by itself. On any other server the monitor reads the role on
// each new connection, and watches for a change of it while connections are open.
//
// The monitor blocks on a list that is never written. A server that becomes a replica ends all blocked commands at once
// (UNBLOCKED), and refuses new ones (READONLY): then all connections are made, and so checked, anew. No call pays for this.
const (
	roleBlock = time.Second            // for which one command of the monitor blocks
	rolePause = 250 * time.Millisecond // between two questions when the server cannot be monitored
)

// checkRoles has new connections of the options checked, and the server monitored from the first one on.
func (c *Client) checkRoles(options *redis.UniversalOptions) {
	if options.IsClusterMode {
		return
	}
	options.OnConnect = func(ctx context.Context, server *redis.Conn) error { return checkRole(ctx, server) }
	own := *options
	own.PoolSize, own.MaxActiveConns = 1, 1
	c.role.server = redis.NewUniversalClient(&own)
	c.role.ctx, c.role.cancel = context.WithCancel(context.Background())
	options.OnConnect = func(ctx context.Context, server *redis.Conn) error {
		if err := checkRole(ctx, server); err != nil {
			return err
		}
		c.role.start(c.monitorRole)
		return nil
	}
}

// monitorRole goes on until it is stopped.
func (c *Client) monitorRole() {
	defer RecoverTo(func(error) {})
	for {
		err, rest := c.blockOnPrimary(), time.Duration(0)
		if err != nil {
			rest = rolePause
		}
		if err != nil && !becameReplica(err) {
			err = c.askRole()
		}
		if becameReplica(err) {
			c.conns.retireAll()
		}
		if !pause(c.role.ctx, rest) {
			return
		}
	}
}

// blockOnPrimary returns nil when the server was a primary all the time.
func (c *Client) blockOnPrimary() error {
	ctx, cancel := context.WithTimeout(context.Background(), roleBlock+ioTimeout)
	defer cancel()
	err := c.role.server.Do(ctx, "BLPOP", c.keys.neverWritten(), roleBlock.Seconds()).Err()
	if err == redis.Nil {
		return nil
	}
	return err
}

// askRole is for a server that cannot be monitored this way: its user may not block, or it refuses writes for another reason.
func (c *Client) askRole() error {
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	return checkRole(ctx, c.redis)
}

// replicaError is the error of a connection to a replica. It begins as Redis's own refusal to write there.
type replicaError struct{}

func (replicaError) Error() string { return "READONLY the server is a replica" }

// RedisError implements redis.Error.
func (replicaError) RedisError() {}

// checkRole refuses a new connection to a replica. A server that does not say its role is taken for a primary.
func checkRole(ctx context.Context, server interface {
	Do(context.Context, ...any) *redis.Cmd
}) error {
	said, err := server.Do(ctx, "HELLO", 2).Slice()
	if err != nil && !isReply(err) {
		return err
	}
	for i := 0; i+1 < len(said); i += 2 {
		if said[i] == "role" && (said[i+1] == "replica" || said[i+1] == "slave") {
			return replicaError{}
		}
	}
	return nil
}

// roleMonitor notices when a client's server becomes a replica. The zero value monitors nothing.
type roleMonitor struct {
	mu      sync.Mutex
	server  redis.UniversalClient // of one connection
	running bool
	ctx     context.Context // ends when it is stopped
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

func (r *roleMonitor) start(monitor func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.ctx.Err() != nil {
		return
	}
	r.running = true
	r.ended.Go(monitor)
}

// stop returns when the monitor has ended.
func (r *roleMonitor) stop() {
	if r.server == nil {
		return
	}
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	_ = r.server.Close()
	r.ended.Wait()
}

func becameReplica(err error) bool { return answeredWith(err, []string{"READONLY", "UNBLOCKED"}) }
