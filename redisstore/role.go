package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A replica answers reads with what it last heard of, such as that a revoked agent is active. So the store reads from
// primaries alone. A node of a cluster sends callers to the primary by itself; any other server is asked for its role on
// each new connection, and watched for a change of it while connections are open.
//
// The watch blocks on a list that nobody writes. A server that becomes a replica ends all blocked commands at once
// (UNBLOCKED), and refuses new ones (READONLY): then all connections are made, and so checked, anew. No call pays for this.
const (
	roleBlock = time.Second            // for which one command of the watch blocks
	rolePause = 250 * time.Millisecond // between two questions when the server cannot be watched
)

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

// roleWatch notices when a store's server becomes a replica. The zero value watches nothing.
type roleWatch struct {
	mu       sync.Mutex
	server   redis.UniversalClient // of one connection
	running  bool
	stopped  bool
	stopping chan struct{} // closed by stop
	ended    sync.WaitGroup
}

// checkRoles has new connections of the options checked, and the server watched from the first one on.
func (s *Store) checkRoles(options *redis.UniversalOptions) {
	if options.IsClusterMode {
		return
	}
	options.OnConnect = func(ctx context.Context, server *redis.Conn) error { return checkRole(ctx, server) }
	own := *options
	own.PoolSize, own.MaxActiveConns = 1, 1
	s.role.server, s.role.stopping = redis.NewUniversalClient(&own), make(chan struct{})
	options.OnConnect = func(ctx context.Context, server *redis.Conn) error {
		if err := checkRole(ctx, server); err != nil {
			return err
		}
		s.role.start(s.watchRole)
		return nil
	}
}

func (r *roleWatch) start(watch func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.stopped {
		return
	}
	r.running = true
	r.ended.Go(watch)
}

// stop returns when the watch has ended.
func (r *roleWatch) stop() {
	if r.server == nil {
		return
	}
	r.mu.Lock()
	if !r.stopped {
		r.stopped = true
		close(r.stopping)
	}
	r.mu.Unlock()
	_ = r.server.Close()
	r.ended.Wait()
}

// watchRole goes on until it is stopped.
func (s *Store) watchRole() {
	defer recoverTo(func(error) {})
	for {
		err, pause := s.blockOnPrimary(), time.Duration(0)
		if err != nil {
			pause = rolePause
		}
		if err != nil && !becameReplica(err) {
			err = s.askRole()
		}
		if becameReplica(err) {
			s.conns.retireAll()
		}
		select {
		case <-s.role.stopping:
			return
		case <-time.After(pause):
		}
	}
}

// blockOnPrimary returns nil when the server was a primary all the time.
func (s *Store) blockOnPrimary() error {
	ctx, cancel := context.WithTimeout(context.Background(), roleBlock+ioTimeout)
	defer cancel()
	err := s.role.server.Do(ctx, "BLPOP", s.keys.neverWritten(), roleBlock.Seconds()).Err()
	if err == redis.Nil {
		return nil
	}
	return err
}

// askRole is for a server that cannot be watched: its user may not block, or it refuses writes for another reason.
func (s *Store) askRole() error {
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	return checkRole(ctx, s.client)
}

func becameReplica(err error) bool { return answeredWith(err, []string{"READONLY", "UNBLOCKED"}) }
