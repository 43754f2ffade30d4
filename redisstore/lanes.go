package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Calls to one server share pipelines when there are many: most of what a call costs, on both sides, is a read and a
// write of a socket. A call that is nearly alone goes by itself, which is quicker then.
const (
	plainCalls    = 8   // under way at once, before others share
	lanePipelines = 1   // at once: the next fills while it is answered
	laneCommands  = 256 // in a pipeline at the most
	// laneWaiting bounds the commands that wait for the next one. They are as many as a server of ours has connections:
	// while all wait in turn, nobody is turned away for another's calls, and Redis works off that many in a second or two.
	laneWaiting = 1 << 15
	// laneTime is how much of its time a command must have left to be sent: it ends the pipeline for all.
	laneTime = 250 * time.Millisecond
)

// Why a command was never sent.
var (
	errLaneFull = errors.New("too many commands wait for Redis")
	errLaneLate = errors.New("the command had waited too long when its turn came")
	errLeftLane = errors.New("the caller left before the command's turn came")
)

// lanes holds a lane for each server, by its address: the nodes of a cluster come and go.
type lanes struct {
	keys    keyspace
	suspect func(error) // hears of errors that tell of a server

	mu        sync.RWMutex
	byAddress map[string]*lane
}

func (l *lanes) of(server *redis.Client) *lane {
	address := server.Options().Addr
	l.mu.RLock()
	known := l.byAddress[address]
	l.mu.RUnlock()
	if known != nil && known.server == server {
		return known
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known = l.byAddress[address]; known == nil || known.server != server {
		if l.byAddress == nil {
			l.byAddress = map[string]*lane{}
		}
		known = &lane{server: server, confirmed: &lane{server: server, confirms: &confirmer{keys: l.keys, suspect: l.suspect}}}
		l.byAddress[address] = known
	}
	return known
}

// lane is the calls to one server. Its goroutines are there only while commands wait.
type lane struct {
	server   *redis.Client
	underWay atomic.Int32 // calls, shared or not

	// confirmed is the lane of the calls whose writes must be confirmed: the others do not wait for a replica.
	confirmed *lane
	confirms  *confirmer // of that lane

	mu        sync.Mutex
	waiting   []*passenger // in order of arrival
	pipelines int          // under way
}

// passenger is a command that shares a pipeline, and who waits for it.
type passenger struct {
	cmd      onceCmd // its error is read after done
	deadline time.Time
	done     chan struct{} // takes one value; its passenger is used again
}

var passengers = sync.Pool{New: func() any { return &passenger{done: make(chan struct{}, 1)} }}

// send sends a command to the server that has its first key, once, and returns when it is answered, the deadline is over
// or ctx ends.
func (s *Store) send(ctx context.Context, deadline time.Time, c *command, cmd onceCmd) error {
	c.bounds = bounds{ctx, deadline}
	server, err := s.serverOf(&c.bounds, c.firstKey())
	if err != nil {
		if !time.Now().Before(deadline) {
			return errLaneLate
		}
		if c.confirm {
			return fmt.Errorf("%w: %w", errNoServer, err)
		}
		return s.sendWhereItBelongs(c, cmd) // which knows what to do, or what to say
	}
	l := s.lanes.of(server)
	if c.confirm {
		l = l.confirmed
	}
	defer l.underWay.Add(-1)
	if l.underWay.Add(1) <= plainCalls {
		err = l.sendAlone(&c.bounds, c.firstKey(), cmd)
	} else {
		err = l.share(ctx, deadline, cmd)
	}
	if _, isCluster := s.client.(*redis.ClusterClient); isCluster && (movedElsewhere(err) || errors.Is(err, redis.ErrClosed)) {
		if c.confirm {
			return s.confirmElsewhere(&c.bounds, c.firstKey(), cmd, err)
		}
		return s.sendWhereItBelongs(c, cmd)
	}
	return err
}

// sendWhereItBelongs leaves it to go-redis to find the server, as it does when it is told of another. It is for commands
// that have not run: left to itself, it would also run again a script that answered READONLY, whatever its command says.
func (s *Store) sendWhereItBelongs(c *command, cmd onceCmd) error {
	c.script.written.Store(false)
	c.showKey()
	return s.client.Process(&c.bounds, cmd)
}

// sendAlone sends a command by itself.
func (l *lane) sendAlone(ctx *bounds, key string, cmd onceCmd) error {
	if l.confirms != nil {
		return l.confirms.send(ctx, l.server, key, cmd, false)
	}
	return l.server.Process(ctx, cmd)
}

// bounds is a context with a deadline but no timer: go-redis sets the deadline on its connection, and bounds by times of
// its own what goes before (dialTimeout, poolTimeout).
type bounds struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (b *bounds) Deadline() (time.Time, bool) { return b.deadline, true }

// share sends the command in one of the next pipelines. No timer is needed for its deadline: a pipeline ends by the
// earliest deadline aboard, and who has hardly any time left is not sent.
func (l *lane) share(ctx context.Context, deadline time.Time, cmd onceCmd) error {
	p := passengers.Get().(*passenger)
	p.cmd, p.deadline = cmd, deadline
	if !l.enter(p) {
		return errLaneFull
	}
	select {
	case <-p.done:
		p.cmd = onceCmd{}
		passengers.Put(p)
		_, err := cmd.answer()
		return err
	case <-ctx.Done(): // never, for most callers: their requests go on when their clients have gone
		if l.leave(p) {
			return errLeftLane
		}
		return ctx.Err()
	}
}

// enter lets a passenger wait, and sees to it that somebody sends it.
func (l *lane) enter(p *passenger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == laneWaiting {
		return false
	}
	l.waiting = append(l.waiting, p)
	if l.pipelines < lanePipelines {
		l.pipelines++
		go l.sendAll()
	}
	return true
}

// leave takes a passenger out who will not wait any longer, and returns false when its command is under way.
func (l *lane) leave(p *passenger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, p)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// sendAll sends until nobody waits.
func (l *lane) sendAll() {
	aboard := make([]*passenger, 0, laneCommands)
	for {
		if aboard = l.board(aboard[:0]); len(aboard) == 0 {
			return
		}
		l.sendOne(aboard)
	}
}

// board takes the first of those who wait. When nobody does, the pipeline is no longer under way.
func (l *lane) board(aboard []*passenger) []*passenger {
	l.mu.Lock()
	defer l.mu.Unlock()
	aboard = append(aboard, l.waiting[:min(len(l.waiting), laneCommands)]...)
	l.waiting = slices.Delete(l.waiting, 0, len(aboard))
	if len(aboard) == 0 {
		l.pipelines--
	}
	return aboard
}

// sendOne sends one pipeline, and wakes everybody on it.
func (l *lane) sendOne(aboard []*passenger) {
	defer func() {
		for _, p := range aboard {
			p.done <- struct{}{}
		}
	}()
	defer recoverTo(func(err error) {
		for _, p := range aboard {
			p.cmd.SetErr(err)
		}
	})
	pipeline, earliest := l.server.Pipeline(), time.Time{}
	now := time.Now()
	for _, p := range aboard {
		if p.deadline.Sub(now) < laneTime {
			p.cmd.SetErr(errLaneLate)
			continue
		}
		if earliest.IsZero() || p.deadline.Before(earliest) {
			earliest = p.deadline
		}
		_ = pipeline.Process(context.Background(), p.cmd) // queues it
	}
	if pipeline.Len() == 0 {
		return
	}
	failure := l.confirms.end(pipeline, keyOf(aboard[0].cmd), earliest)
	_, err := pipeline.Exec(&bounds{context.Background(), earliest})
	unconfirmed := failure()
	for _, p := range aboard {
		p.cmd.explain(err)
		p.cmd.note(unconfirmed)
	}
}
