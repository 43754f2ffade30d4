package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// Calls to one server share pipelines when there are many: most of what a call costs, on both sides, is a read and a
// write of a socket. A call that is nearly alone goes by itself, which is quicker then.
const (
	plainCalls    = 8   // under way at once, before others share
	lanePipelines = 1   // at once: the next fills while it is answered
	laneCommands  = 256 // in a pipeline at the most
	// laneTime is how much of its time a command must have left to be sent: it ends the pipeline for all.
	laneTime = 250 * time.Millisecond
	// laneWait is how long a command should have to wait at the most, when there are more than Redis can serve. It gives
	// the row its room; see row.admits.
	laneWait = 50 * time.Millisecond
	// stuckTime is after how long a pipeline without an answer shows that Redis is stuck: nobody waits for the next one.
	stuckTime = time.Second
)

// Why a command was never sent.
var (
	errLaneFull  = fmt.Errorf("%w: too many commands wait for Redis", ErrOverloaded)
	errLaneStuck = fmt.Errorf("%w: Redis has not answered for a while", ErrOverloaded)
	errLaneLate  = errors.New("the command had waited too long when its turn came")
	errLeftLane  = errors.New("the caller left before the command's turn came")
	errAboard    = errors.New("the caller left while the command was under way") // so it may be sent yet
)

// lanes holds a lane for each server, by its address: the nodes of a cluster come and go.
type lanes struct {
	keys    keyspace
	suspect func(error)         // hears of errors that tell of a server
	sizes   prometheus.Observer // hears how many calls share a pipeline

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
		known = newLane(server)
		known.sizes = l.sizes
		known.confirmed = newLane(server)
		known.confirmed.sizes = l.sizes
		known.confirmed.confirms = newConfirmer(l.keys, l.suspect)
		l.byAddress[address] = known
	}
	return known
}

// lane is the calls to one server. Its goroutines are there only while commands wait.
type lane struct {
	server   *redis.Client
	underWay atomic.Int32 // calls, shared or not
	stuck    atomic.Bool  // Redis has not answered the last pipeline, for stuckTime or more

	// confirmed is the lane of the calls whose writes must be confirmed: the others do not wait for a replica.
	confirmed *lane
	confirms  *confirmer // of that lane

	batches bulk                // which do not wait in the row
	sizes   prometheus.Observer // hears how many calls share a pipeline; nil for nobody

	mu        sync.Mutex
	row       row // who waits
	pipelines int // under way
	boarded   time.Time
	pace      pace
}

func newLane(server *redis.Client) *lane {
	return &lane{server: server, row: row{room: laneCommands}}
}

// passenger is a command that shares a pipeline, and who waits for it.
type passenger struct {
	cmd      onceCmd // its error is read after done
	flow     flow
	before   *passenger // in its line
	behind   *passenger
	deadline time.Time
	traced   *tracedCall   // nil when nobody will see
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
	if l.underWay.Add(1) <= plainCalls && !l.stuck.Load() {
		err = l.sendAlone(&c.bounds, c.firstKey(), cmd)
	} else {
		err = l.share(ctx, deadline, c.flow, cmd)
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
func (l *lane) share(ctx context.Context, deadline time.Time, f flow, cmd onceCmd) error {
	p := passengers.Get().(*passenger)
	p.cmd, p.flow, p.deadline = cmd, f, deadline
	p.traced, _ = ctx.(*tracedCall)
	if err := l.enter(p); err != nil {
		p.cmd, p.traced = onceCmd{}, nil
		passengers.Put(p)
		return err
	}
	select {
	case <-p.done:
		p.cmd, p.traced = onceCmd{}, nil
		passengers.Put(p)
		return cmd.failure()
	case <-ctx.Done(): // never, for most callers: their requests go on when their clients have gone
		if l.leave(p) {
			return errLeftLane
		}
		select {
		case <-p.done:
			return cmd.failure()
		default:
			return fmt.Errorf("%w: %w", errAboard, ctx.Err())
		}
	}
}

// enter lets a passenger wait, and sees to it that somebody sends it, or turns it away. When Redis is stuck, one at a time
// may try.
func (l *lane) enter(p *passenger) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stuck.Load() && l.pipelines > 0:
		return errLaneStuck
	case l.row.admits(p.flow, time.Now):
		l.row.add(p)
	default:
		l.row.excess.add(p)
	}
	if l.pipelines < lanePipelines {
		l.pipelines++
		go l.sendAll()
	}
	return nil
}

// leave takes a passenger out who will not wait any longer, and returns false when its command is under way.
func (l *lane) leave(p *passenger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.row.remove(p)
}

// turnAway ends the waiting of the first in excess. To answer them takes time from those who are served: turned away at once,
// as fast as they come, they come again, and hardly anybody is served any more. So with each pipeline no more are turned
// away than are served by it; what comes beyond twice that has to wait for its refusal.
func (l *lane) turnAway(most int) {
	excess := &l.row.excess
	for range min(most, excess.length) {
		l.tell(excess.takeFirst(), errLaneFull)
	}
	for excess.length > 0 && time.Until(excess.first.deadline) < laneTime {
		l.tell(excess.takeFirst(), errLaneFull)
	}
}

// tell wakes a passenger that was not sent.
func (l *lane) tell(p *passenger, why error) {
	p.cmd.SetErr(why)
	p.done <- struct{}{}
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

// board takes those whose turn it is. When nobody waits, the pipeline is no longer under way.
func (l *lane) board(aboard []*passenger) []*passenger {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(aboard) < laneCommands {
		p := l.row.take()
		if p == nil {
			break
		}
		aboard = append(aboard, p)
	}
	if len(aboard) == 0 {
		l.pipelines--
		return aboard
	}
	l.turnAway(len(aboard))
	l.boarded = time.Now()
	return aboard
}

// ended notes how a pipeline of so many commands has ended, before those aboard are told.
func (l *lane) ended(commands int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := time.Since(l.boarded)
	answered := err == nil || isReply(err)
	// What fails at once can be tried again at once, and a pool without connections says nothing of Redis.
	l.stuck.Store(!answered && took >= stuckTime && !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrPoolExhausted))
	if l.stuck.Load() {
		l.sendAway()
	}
	if answered && commands == laneCommands && took > 0 {
		l.pace.note(laneCommands / took.Seconds())
		l.row.room = max(laneCommands, int(float64(l.pace)*laneWait.Seconds()))
	}
}

// sendAway ends the waiting when Redis does not answer: nobody can say when it will.
func (l *lane) sendAway() {
	for p := l.row.take(); p != nil; p = l.row.take() {
		l.tell(p, errLaneStuck)
	}
}

// pace is how many commands go in a second, by the last few pipelines that were full.
type pace float64

func (p *pace) note(latest float64) {
	if *p == 0 {
		*p = pace(latest)
	}
	*p += (pace(latest) - *p) / 8
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
	sent := pipeline.Len()
	if sent == 0 {
		return
	}
	if l.sizes != nil {
		l.sizes.Observe(float64(sent))
	}
	failure := l.confirms.end(pipeline, keyOf(aboard[0].cmd), earliest)
	trips := l.tripsOf(aboard, sent)
	_, err := pipeline.Exec(&bounds{context.Background(), earliest})
	unconfirmed := failure()
	l.ended(sent, err)
	for _, p := range aboard {
		p.cmd.explain(err)
		p.cmd.note(unconfirmed)
	}
	endTrips(trips)
}
