package redisstore

import (
	"context"
	"sync"
	"time"
)

// bulk bounds how many pipelines of one kind are under way at once that are one caller's alone: of batches, which are long,
// or of lists. They use the same connections as the lanes, which must not wait behind them. Those that wait for a place
// take turns by flow, as in a lane. Who has a place must not wait for another one.
type bulk struct {
	mu       sync.Mutex
	underWay int
	row      row
}

const (
	bulkPipelines = 4   // under way at once: with those of the lists and of the lanes no more than go-redis keeps for pipelines
	bulkWaiting   = 256 // of one flow, before more are turned away at once
	// bulkWait is how long one waits for a place at the most. What is left of callTimeout is for the pipeline.
	bulkWait = poolTimeout
)

// enter waits for a place. It returns errLaneFull when there is none in time; whoever got one leaves.
func (b *bulk) enter(ctx context.Context, f flow) error {
	p, err := b.join(f)
	if p == nil {
		return err
	}
	timer := time.NewTimer(bulkWait)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if !b.giveUp(p) {
		b.leave() // it had got a place at that moment
	}
	return errLaneFull
}

// join takes a place if one is free, lets a passenger wait, or refuses.
func (b *bulk) join(f flow) (*passenger, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.underWay < bulkPipelines {
		b.underWay++
		return nil, nil
	}
	if q := b.row.queues[f]; q != nil && q.length >= bulkWaiting {
		return nil, errLaneFull
	}
	p := &passenger{flow: f, done: make(chan struct{}, 1)}
	b.row.add(p)
	return p, nil
}

func (b *bulk) giveUp(p *passenger) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.row.remove(p)
}

// leave gives the place to whose turn it is.
func (b *bulk) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.row.take(); p != nil {
		p.done <- struct{}{}
		return
	}
	b.underWay--
}
