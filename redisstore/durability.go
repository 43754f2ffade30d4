package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Durability says when a write is acknowledged.
type Durability string

const (
	// Local: once the primary has it, as safely as its appendfsync keeps it.
	Local Durability = "local"
	// Replicated: once a replica has confirmed it too. What none has confirmed in time is ErrOutcomeUnknown.
	Replicated Durability = "replicated"
)

const (
	confirmTime  = time.Second            // is what a replica may take, unless the call has less
	confirmSpare = 100 * time.Millisecond // is left for the answer, so that it comes before the call's deadline
	markLifetime = 24 * time.Hour
	maxRedirects = 3
)

var (
	errUnconfirmed = errors.New("no replica has confirmed the write")
	errNoServer    = errors.New("no server is known to have the key") // so nothing was sent
)

// confirmer ends the pipelines of one server with a WAIT. That waits for what its own connection has written last, and on
// Redis 7.2 and later for nothing if that wrote nothing, as a script does that finds its work done already: by another
// connection perhaps, a moment ago, and on no replica yet. So a write of ours, the mark, goes before it.
type confirmer struct {
	keys    keyspace
	suspect func(error)            // hears of errors that tell of the server
	mark    atomic.Pointer[string] // a key that the server has, or had
	places  chan struct{}          // holds one value for each command that is confirmed by itself
}

// confirmPlaces is how many commands may be confirmed by themselves at once: each keeps a connection for as long as a replica
// takes, of which others have need.
const confirmPlaces = 16

func newConfirmer(keys keyspace, suspect func(error)) *confirmer {
	return &confirmer{keys: keys, suspect: suspect, places: make(chan struct{}, confirmPlaces)}
}

// takePlace waits for a place until it would be too late to send anything.
func (c *confirmer) takePlace(ctx *bounds) error {
	select {
	case c.places <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(ctx.deadline) - laneTime)
	defer timer.Stop()
	select {
	case c.places <- struct{}{}:
		return nil
	case <-timer.C:
		return errLaneLate
	case <-ctx.Done():
		return errLeftLane
	}
}

// end adds to a pipeline of writes what confirms them, and returns what says, after the pipeline, why they are not confirmed
// or nil if they are. The key is one that the pipeline writes. A nil confirmer confirms everything.
func (c *confirmer) end(p redis.Pipeliner, key string, deadline time.Time) (failure func() error) {
	if c == nil {
		return func() error { return nil }
	}
	mark := c.mark.Load()
	if mark == nil {
		own := c.keys.mark(key)
		mark = &own
		c.mark.Store(mark)
	}
	marked, wait := addMark(p, *mark), c.addWait(p, deadline)
	return func() error {
		if err := marked.Err(); err != nil {
			c.mark.Store(nil) // its slot may have moved: the next takes one of its own
			return c.failed(err)
		}
		return wait()
	}
}

// markWrite is sent with its source each time: in a pipeline nobody could send it again.
var markWrite = newScript("mark_write", tidies)

func addMark(p redis.Pipeliner, key string) *redis.Cmd {
	marked := redis.NewCmd(context.Background(), "eval", markWrite.source, 1, key, markLifetime.Milliseconds())
	_ = p.Process(context.Background(), marked) // queues it
	return marked
}

// endAsking is end for a server that is asked for a slot that it has not got yet, and may have no other: the mark is in it.
func (c *confirmer) endAsking(p redis.Pipeliner, key string, deadline time.Time) (failure func() error) {
	p.Do(context.Background(), "asking")
	marked, wait := addMark(p, c.keys.mark(key)), c.addWait(p, deadline)
	return func() error {
		if err := marked.Err(); err != nil {
			return c.failed(err)
		}
		return wait()
	}
}

func (c *confirmer) addWait(p redis.Pipeliner, deadline time.Time) (failure func() error) {
	most := min(confirmTime, time.Until(deadline)-confirmSpare)
	wait := redis.NewIntCmd(context.Background(), "wait", 1, max(most.Milliseconds(), 1)) // 0 would be for ever
	_ = p.Process(context.Background(), wait)                                             // queues it
	return func() error {
		switch replicas, err := wait.Result(); {
		case err != nil:
			return c.failed(err)
		case replicas < 1:
			return fmt.Errorf("%w in time", errUnconfirmed)
		}
		return nil
	}
}

// failed does not wrap the cause: whatever became of the WAIT, the writes before it may have happened.
func (c *confirmer) failed(cause error) error {
	c.suspect(cause)
	return fmt.Errorf("%w: %v", errUnconfirmed, cause)
}

// note notes the failure on a command that was answered.
func (c onceCmd) note(unconfirmed error) {
	if values, ok := c.Val().([]any); ok && len(values) > 0 && unconfirmed != nil {
		c.SetErr(unconfirmed)
	}
}

// confirms says whether what a script of this access writes must be confirmed.
func (s *Store) confirms(a access) bool { return a == writes && s.config.Durability == Replicated }

// confirmerOf returns what confirms the writes on a server, nil if nothing need.
func (s *Store) confirmerOf(server *redis.Client) *confirmer {
	if !s.confirms(writes) {
		return nil
	}
	return s.lanes.of(server).confirmed.confirms
}

// write sends a command that is no script, and that writes the key.
func (s *Store) write(ctx context.Context, key string, cmd redis.Cmder) error {
	if !s.confirms(writes) {
		return s.client.Process(ctx, cmd)
	}
	return s.writeConfirmed(&bounds{ctx, deadlineOf(ctx, time.Now())}, key, cmd)
}

// writeConfirmed is write with what confirms it.
func (s *Store) writeConfirmed(ctx *bounds, key string, cmd redis.Cmder) error {
	server, err := s.serverOf(ctx, key)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoServer, err)
	}
	err = s.confirmerOf(server).send(ctx, server, key, cmd, false)
	return s.confirmElsewhere(ctx, key, cmd, err)
}

// send sends one command and what confirms it to a server, and returns its error, or why it is not confirmed. Asking is for a
// server that has not got the key's slot yet.
func (c *confirmer) send(ctx *bounds, server *redis.Client, key string, cmd redis.Cmder, asking bool) error {
	if err := c.takePlace(ctx); err != nil {
		return err
	}
	defer func() { <-c.places }()
	pipeline, end := server.Pipeline(), c.end
	if asking {
		pipeline.Do(ctx, "asking")
		end = c.endAsking
	}
	_ = pipeline.Process(ctx, cmd) // queues it
	failure := end(pipeline, key, ctx.deadline)
	_, broken := pipeline.Exec(ctx)
	unconfirmed := failure()
	if once, isScript := cmd.(onceCmd); isScript {
		once.explain(broken)
		once.note(unconfirmed)
		_, err := once.answer()
		return err
	}
	return cmp.Or(cmd.Err(), unconfirmed)
}

// confirmElsewhere sends a command, which a node of a cluster did not run, to the node that has its key. go-redis does that
// only for what may go to any connection of the other node, while a WAIT must follow its write on the same.
func (s *Store) confirmElsewhere(ctx *bounds, key string, cmd redis.Cmder, err error) error {
	cluster, isCluster := s.client.(*redis.ClusterClient)
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
		err = s.confirmerOf(server).send(ctx, server, key, cmd, asking)
	}
	return err
}

// serverAt returns the primary that MOVED or ASK names, or nil.
func serverAt(ctx context.Context, cluster *redis.ClusterClient, redirection error) *redis.Client {
	words := strings.Fields(redirection.Error())
	var mu sync.Mutex
	var named *redis.Client
	_ = cluster.ForEachMaster(ctx, func(_ context.Context, primary *redis.Client) error { // looks at the state again
		mu.Lock()
		defer mu.Unlock()
		if primary.Options().Addr == words[len(words)-1] {
			named = primary
		}
		return nil
	})
	return named
}
