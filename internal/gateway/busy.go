package gateway

import (
	"context"
	"sync"
)

// busy counts what a stop waits for. Other than a sync.WaitGroup's, its count may rise during a wait.
type busy struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when the count is 0; nil: nothing waits
}

// begin counts one until the function that it returns is called.
func (b *busy) begin() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	return b.end
}

func (b *busy) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count--; b.count == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// do calls a function in a goroutine of its own.
func (b *busy) do(f func()) {
	end := b.begin()
	go func() {
		defer end()
		f()
	}()
}

// wait returns when the count is 0, or when ctx ends.
func (b *busy) wait(ctx context.Context) {
	b.mu.Lock()
	if b.count == 0 {
		b.mu.Unlock()
		return
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
