package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// workerPause is how long a worker rests between two steps: the machine has other work too.
	workerPause = 4 * time.Millisecond
	// retryPause is how long a worker waits before it asks again what was not answered.
	retryPause = 50 * time.Millisecond
	// lastPatience is how long workers go on asking, once they are told to stop, for what has no outcome yet.
	lastPatience = 20 * time.Second
)

// Fleet is goroutines that work until they are told to stop, each with its share of every kind of call.
type Fleet struct {
	seed      uint64
	world     *World
	caller    *Caller
	instances []string

	stop     chan struct{}   // closed: no new steps
	patience context.Context // done: no new calls either
	giveUp   context.CancelFunc
	workers  sync.WaitGroup
}

// StartFleet sets so many workers to work on the instances at these base URLs. Workers draw what they do from the seed;
// when they do it depends on the machine.
func StartFleet(w *World, c *Caller, instances []string, workers int, seed uint64) *Fleet {
	f := &Fleet{seed: seed, world: w, caller: c, instances: instances, stop: make(chan struct{})}
	f.patience, f.giveUp = context.WithCancel(context.Background())
	for i := range workers {
		worker := &worker{Fleet: f, number: i, agent: w.Agents[i%len(w.Agents)], next: i,
			random: rand.New(rand.NewPCG(seed, uint64(i)))}
		f.workers.Go(worker.work)
	}
	return f
}

// Stop lets every worker finish what it is at, and returns when all have ended. It may be called again.
func (f *Fleet) Stop() {
	select {
	case <-f.stop:
	default:
		close(f.stop)
	}
	timer := time.AfterFunc(lastPatience, f.giveUp)
	defer timer.Stop()
	f.workers.Wait()
	f.giveUp()
}

func (f *Fleet) stopped() bool {
	select {
	case <-f.stop:
		return true
	default:
		return false
	}
}

// worker is one goroutine of a fleet. What it does at the same time it waits for.
type worker struct {
	*Fleet
	number int
	agent  *Agent
	random *rand.Rand
	next   int // of the instances

	keys    int // idempotency keys used
	family  string
	refresh string // token
}

// steps are what workers do, and how often.
var steps = []struct {
	weight int
	do     func(*worker)
}{
	{40, (*worker).chargeOnce},
	{30, (*worker).chargeKeyed},
	{16, (*worker).transact},
	{8, (*worker).refreshTogether},
	{2, (*worker).revokeFamily},
	{1, (*worker).revokeAgent},
	{3, (*worker).endSession},
}

func (w *worker) work() {
	for !w.stopped() {
		w.draw()(w)
		w.rest(workerPause)
	}
}

func (w *worker) draw() func(*worker) {
	sum := 0
	for _, step := range steps {
		sum += step.weight
	}
	drawn := w.random.IntN(sum)
	for _, step := range steps {
		if drawn -= step.weight; drawn < 0 {
			return step.do
		}
	}
	panic("unreachable")
}

func (w *worker) rest(pause time.Duration) {
	select {
	case <-w.patience.Done():
	case <-time.After(pause):
	}
}

// instance returns the worker's instances in turn.
func (w *worker) instance() string {
	w.next++
	return w.instances[w.next%len(w.instances)]
}

// once makes a call that is not made again, whatever comes of it.
func (w *worker) once(r Request) (Call, []byte) {
	c, body := w.caller.Do(w.instance(), r)
	if c.Status == 0 || c.Status >= 500 {
		w.rest(retryPause) // nobody asks without pause what does not answer
	}
	return c, body
}

// insist makes a call until it is answered for good, at one instance after the other. It must be one that can be made
// twice: with an idempotency key, or by its nature.
func (w *worker) insist(r Request) (Call, []byte) { return w.insistFrom(w.instance, r) }

func (w *worker) insistFrom(instance func() string, r Request) (Call, []byte) {
	for {
		c, body := w.caller.Do(instance(), r)
		if c.Status != 0 && c.Status < 500 || w.patience.Err() != nil {
			return c, body
		}
		w.rest(retryPause)
	}
}

// keyed gives a request an idempotency key that no other has, of another fleet in the same world neither.
func (w *worker) keyed(r Request) Request {
	w.keys++
	r.Key = strconv.FormatUint(w.seed, 36) + "-" + strconv.Itoa(w.number) + "-" + strconv.Itoa(w.keys)
	return r
}

func (w *worker) post(kind Kind, path string, body any) Request {
	return Request{Call: Call{Kind: kind}, Method: http.MethodPost, Path: path, Body: body, Token: w.agent.Access}
}
