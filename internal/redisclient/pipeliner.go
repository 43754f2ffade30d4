package redisclient

import (
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
	unsharedCalls = 8   // in flight, before others share
	maxPipelines  = 1   // in flight: the next fills until it is answered
	maxBatch      = 256 // commands in a pipeline at the most
	// minTimeLeft is how much of its time a command must have left to be sent: it ends the pipeline for all.
	minTimeLeft = 250 * time.Millisecond
	// The fair queue has room for the calls that go in targetWait, and for minRoom calls if those go in longestWait: so many
	// callers who each wait for their answer are no overload.
	targetWait  = 50 * time.Millisecond
	longestWait = 2 * time.Second
	minRoom     = 1024
	// servedPerShed is how many calls are served for each that is shed; see pipeliner.shedOverflow.
	servedPerShed = 4
	// stallTime is after how long a pipeline without an answer shows that Redis is stalled: no call waits for the next one.
	stallTime = time.Second
)

// pipeliner sends the calls to one server. Its goroutines run only while commands wait.
type pipeliner struct {
	server   *redis.Client
	inFlight atomic.Int32 // calls, shared or not
	stalled  atomic.Bool  // Redis has not answered the last pipeline, for stallTime or more

	// confirmed is the pipeliner of the calls whose writes must be confirmed: the others do not wait for a replica.
	confirmed *pipeliner
	confirms  *confirmer // of that pipeliner

	batches semaphore           // of the pipelines of RunAll, which do not wait in the queue
	sizes   prometheus.Observer // observes how many calls share a pipeline; may be nil
	merges  prometheus.Observer // observes how many calls share a command; may be nil
	byTag   atomic.Bool         // only calls whose keys have the same hash tag may share a command

	mu        sync.Mutex
	queue     fairQueue
	pipelines int     // in flight
	merger    *merger // nil while a pipeline uses it
	taken     time.Time
	pace      pace
}

func newPipeliner(server *redis.Client) *pipeliner {
	return &pipeliner{server: server, queue: fairQueue{room: minRoom, tight: maxBatch}}
}

// sendAlone sends a command by itself.
func (l *pipeliner) sendAlone(cmd *Command, sent unretriedCmd) error {
	if l.confirms != nil {
		return l.confirms.send(&cmd.bounds, l.server, cmd.firstKey(), sent, false)
	}
	return l.server.Process(&cmd.bounds, sent)
}

// share sends the command in one of the next pipelines. It needs no timer for its deadline: a pipeline ends by the earliest
// deadline of its batch, and a command with hardly any time left is not sent. A caller whose own time ends sooner leaves by itself:
// when Redis is slow, its pipeline goes on for the others. But WAIT answers in time for each caller.
func (l *pipeliner) share(cmd *Command, sent unretriedCmd) error {
	ctx := cmd.bounds.Context
	p := pendingCalls.Get().(*pendingCall)
	p.cmd, p.call, p.flow, p.deadline = sent, cmd, cmd.flow, cmd.bounds.deadline
	p.traced, _ = ctx.(*tracedCall)
	if own, ok := ctx.Deadline(); ok && ctx.Done() != nil && !own.After(p.deadline) && l.confirms == nil {
		p.deadline = time.Now().Add(CallTimeout)
	}
	if err := l.enqueue(p); err != nil {
		p.release()
		return err
	}
	if ctx.Done() == nil { // as for most callers: their requests go on when their clients have gone. A select takes twice as long
		<-p.done
		p.release()
		return sent.failure()
	}
	select {
	case <-p.done:
		p.release()
		return sent.failure()
	case <-ctx.Done():
		if l.leave(p) {
			return errCallerLeft
		}
		select {
		case <-p.done:
			return sent.failure()
		default:
			return fmt.Errorf("%w: %w", errLeftInFlight, ctx.Err())
		}
	}
}

// enqueue lets a call wait and starts a pipeline if there is none, or sheds the call. When Redis is stalled, one call at a
// time may try.
func (l *pipeliner) enqueue(p *pendingCall) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stalled.Load() && l.pipelines > 0:
		return errStalled
	case l.queue.hasRoom(p.flow, time.Now):
		l.queue.add(p)
	default:
		l.queue.addBeyond(p)
	}
	if l.pipelines < maxPipelines {
		l.pipelines++
		go l.sendAll()
	}
	return nil
}

// leave takes out a call that will not wait any longer, and returns false when its command is in flight.
func (l *pipeliner) leave(p *pendingCall) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.remove(p)
}

// sendAll sends until no call waits.
func (l *pipeliner) sendAll() {
	batch := make([]*pendingCall, 0, maxBatch)
	for {
		if batch = l.takeBatch(batch[:0]); len(batch) == 0 {
			return
		}
		l.sendBatch(batch)
	}
}

// takeBatch takes the calls whose turn it is. When no call waits, the pipeline is no longer in flight.
func (l *pipeliner) takeBatch(batch []*pendingCall) []*pendingCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(batch) < maxBatch {
		p := l.queue.take()
		if p == nil {
			break
		}
		batch = append(batch, p)
	}
	if len(batch) == 0 {
		l.pipelines--
		return batch
	}
	l.shedOverflow(max(1, len(batch)/servedPerShed))
	l.taken = time.Now()
	return batch
}

// shedOverflow refuses the first calls of the overflow. Refusing takes time from the calls that are served, and callers that
// are refused at once come again at once, until hardly any call is served. So each pipeline sheds only a part of what it
// serves; the other calls beyond the room have to wait for their refusal.
func (l *pipeliner) shedOverflow(most int) {
	overflow := &l.queue.overflow
	for range min(most, overflow.length) {
		l.queue.fromBeyond(overflow.takeFirst()).refuse(errQueueFull)
	}
	for overflow.length > 0 && time.Until(overflow.first.deadline) < minTimeLeft {
		l.queue.fromBeyond(overflow.takeFirst()).refuse(errQueueFull)
	}
}

// shedAll sheds all calls that wait, because it is unknown when Redis will answer.
func (l *pipeliner) shedAll() {
	for p := l.queue.take(); p != nil; p = l.queue.take() {
		p.refuse(errStalled)
	}
}

// ended notes how a pipeline of so many commands has ended, before its calls return.
func (l *pipeliner) ended(commands int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := time.Since(l.taken)
	answered := err == nil || isReply(err)
	// What fails at once can be tried again at once, and a pool without connections says nothing of Redis.
	l.stalled.Store(!answered && took >= stallTime && !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrPoolExhausted))
	if l.stalled.Load() {
		l.shedAll()
	}
	if answered && commands == maxBatch && took > 0 {
		l.pace.note(maxBatch / took.Seconds())
		l.queue.room = max(maxBatch, min(minRoom, l.pace.in(longestWait)), l.pace.in(targetWait))
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

// in returns how many commands go in that time.
func (p pace) in(d time.Duration) int { return int(float64(p) * d.Seconds()) }

// load returns how many calls wait, and how many are in flight.
func (l *pipeliner) load() load {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.queue.length()
	return load{waiting, max(int(l.inFlight.Load())-waiting, 0)} // inFlight counts a call a moment before it waits, and after
}

// isStalled says whether Redis has not answered the last pipeline and a call tries again or waits. Only a next pipeline can
// find that Redis answers again, and a server that has left the cluster, or that no call needs, gets none.
func (l *pipeliner) isStalled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stalled.Load() && (l.pipelines > 0 || l.queue.length() > 0)
}

// pipeliners holds a pipeliner for each server, by its address: the nodes of a cluster come and go.
type pipeliners struct {
	newConfirmer func() *confirmer
	sizes        prometheus.Observer // observes how many calls share a pipeline
	merges       prometheus.Observer // observes how many calls share a command
	cluster      bool

	last      atomic.Pointer[pipeliner] // that was asked for; most clients have only one server
	mu        sync.RWMutex
	byAddress map[string]*pipeliner
}

func (l *pipeliners) of(server *redis.Client) *pipeliner {
	if last := l.last.Load(); last != nil && last.server == server {
		return last
	}
	found := l.find(server)
	if !l.cluster { // there every call has another
		l.last.Store(found)
	}
	return found
}

func (l *pipeliners) find(server *redis.Client) *pipeliner {
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
			l.byAddress = map[string]*pipeliner{}
		}
		known = l.begin(server)
		known.confirmed = l.begin(server)
		known.confirmed.confirms = l.newConfirmer()
		l.byAddress[address] = known
	}
	return known
}

func (l *pipeliners) begin(server *redis.Client) *pipeliner {
	p := newPipeliner(server)
	p.sizes, p.merges = l.sizes, l.merges
	p.byTag.Store(l.cluster)
	return p
}

func (l *pipeliners) all() []*pipeliner {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := make([]*pipeliner, 0, len(l.byAddress))
	for _, one := range l.byAddress {
		all = append(all, one)
	}
	return all
}
