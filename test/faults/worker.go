package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// retryPause is how long a worker waits before it repeats a call that was not answered.
const retryPause = 50 * time.Millisecond

// stopPatience is how long stopping workers keep retrying calls that have no known outcome yet.
const stopPatience = 20 * time.Second

// Workers is a set of workers that call the service until they are stopped. Each makes every kind of call.
type Workers struct {
	seed      uint64
	fixture   *Fixture
	caller    *Caller
	instances []string // base URLs

	working      context.Context // done: begin no new steps
	patience     context.Context // done: make no new calls either
	stop, giveUp context.CancelFunc
	workers      sync.WaitGroup
}

// StartWorkers starts workers that call the instances at these base URLs. The seed decides what each worker does, not when.
func StartWorkers(w *Fixture, c *Caller, instances []string, workers int, seed uint64) *Workers {
	f := &Workers{seed: seed, fixture: w, caller: c, instances: instances}
	f.working, f.stop = context.WithCancel(context.Background())
	f.patience, f.giveUp = context.WithCancel(context.Background())
	for n := range workers {
		f.workers.Go(f.newWorker(n).work)
	}
	return f
}

func (f *Workers) newWorker(number int) *worker {
	return &worker{Workers: f, number: number, agent: f.fixture.Agents[number%len(f.fixture.Agents)], next: number,
		random: rand.New(rand.NewPCG(f.seed, uint64(number)))}
}

// Stop returns when every worker has finished its current step. It may be called again.
func (f *Workers) Stop() {
	f.stop()
	timer := time.AfterFunc(stopPatience, f.giveUp)
	defer timer.Stop()
	f.workers.Wait()
	f.giveUp()
}

// worker is one goroutine of a fleet. It waits for the calls that it makes concurrently.
type worker struct {
	*Workers
	number int
	agent  *Agent
	random *rand.Rand
	next   int // index of the next instance

	keys    int // idempotency keys used
	family  string
	refresh string // token
}

func (w *worker) rest(pause time.Duration) {
	select {
	case <-w.patience.Done():
	case <-time.After(pause):
	}
}

// instance returns the instances in turn.
func (w *worker) instance() string {
	w.next++
	return w.instances[w.next%len(w.instances)]
}

// call makes a call and does not retry it.
func (w *worker) call(r Request) (Call, []byte) {
	c, body := w.caller.Do(w.instance(), r)
	if c.Status == 0 || c.Status >= 500 {
		w.rest(retryPause) // real clients back off
	}
	return c, body
}

// callUntilAnswered repeats a call, at one instance after the other, until it has a definite answer. The call must be
// idempotent, by a key or by its method.
func (w *worker) callUntilAnswered(r Request) (Call, []byte) {
	return w.callUntilAnsweredAt(w.instance, r)
}

func (w *worker) callUntilAnsweredAt(instance func() string, r Request) (Call, []byte) {
	for {
		c, body := w.caller.Do(instance(), r)
		if c.Status != 0 && c.Status < 500 || w.patience.Err() != nil {
			return c, body
		}
		w.rest(retryPause)
	}
}

// concurrently makes several calls at once, each until it is answered, and returns the bodies of the answers.
func (w *worker) concurrently(requests ...Request) [][]byte {
	bodies := make([][]byte, len(requests))
	var all sync.WaitGroup
	for n, r := range requests {
		turn := w.next + n
		all.Go(func() {
			instance := func() string { turn++; return w.instances[turn%len(w.instances)] }
			_, bodies[n] = w.callUntilAnsweredAt(instance, r)
		})
	}
	all.Wait()
	return bodies
}

// keyed gives a request an idempotency key that is unique across all fleets of the fixture.
func (w *worker) keyed(r Request) Request {
	w.keys++
	r.Key = strconv.FormatUint(w.seed, 36) + "-" + strconv.Itoa(w.number) + "-" + strconv.Itoa(w.keys)
	return r
}

func (w *worker) post(kind Kind, path string, body any) Request {
	return Request{Call: Call{Kind: kind}, Method: http.MethodPost, Path: path, Body: body, Token: w.agent.Access}
}
