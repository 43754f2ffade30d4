package redisclient

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
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

// roleMonitor notices when a client's server becomes a replica. The zero value monitors nothing.
type roleMonitor struct {
	mu       sync.Mutex
	server   redis.UniversalClient // of one connection
	running  bool
	stopped  bool
	stopping chan struct{} // closed by stop
	ended    sync.WaitGroup
}

func (r *roleMonitor) start(monitor func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.stopped {
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
	if !r.stopped {
		r.stopped = true
		close(r.stopping)
	}
	r.mu.Unlock()
	_ = r.server.Close()
	r.ended.Wait()
}

func becameReplica(err error) bool { return answeredWith(err, []string{"READONLY", "UNBLOCKED"}) }
