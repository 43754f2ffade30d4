package server

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// waiting counts the requests that wait for events, and ends them with the server. No organization can take all places.
type waiting struct {
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	total int
	own   map[uuid.UUID]int // by organization
}

func newWaiting() *waiting {
	ctx, end := context.WithCancel(context.Background())
	return &waiting{ctx: ctx, end: end, own: map[uuid.UUID]int{}}
}

// enter counts one in, unless there are too many.
func (w *waiting) enter(organization uuid.UUID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.own[organization] >= maxOwn:
		return errOwnWaiting
	case w.total >= maxWaiting:
		return errManyWaiting
	}
	w.total++
	w.own[organization]++
	return nil
}

func (w *waiting) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total
}

func (w *waiting) leave(organization uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total--
	if w.own[organization]--; w.own[organization] == 0 {
		delete(w.own, organization)
	}
}
