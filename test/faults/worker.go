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

// assignment is what the workers of a fleet share.
type assignment struct {
	seed      uint64
	fixture   *Fixture
	caller    *Caller
	instances []string

	working  context.Context // done: begin no new steps
	patience context.Context // done: make no new calls either
}

// worker is one goroutine of a fleet. It waits for the calls that it makes concurrently.
type worker struct {
	*assignment
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
