package records

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

// reports lets this instance make one report of an organization at a time. The others wait in their order.
type reports struct {
	mu    sync.Mutex
	queue map[uuid.UUID][]chan struct{} // of organizations with a report under way: those that wait
}

func newReports() *reports {
	return &reports{queue: map[uuid.UUID][]chan struct{}{}}
}

// enter waits until no other report of the organization is under way. Errors: ErrManyReports.
func (r *reports) enter(ctx context.Context, organization uuid.UUID) (release func(), err error) {
	release = func() { r.leave(organization) }
	turn, err := r.join(organization)
	if turn == nil {
		return release, err
	}
	timer := time.NewTimer(reportWait)
	defer timer.Stop()
	select {
	case <-turn:
		return release, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if !r.quit(organization, turn) {
		release() // its turn came at that moment
	}
	return nil, ErrManyReports
}

// join begins the organization's report, or returns a place in its queue.
func (r *reports) join(organization uuid.UUID) (chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, busy := r.queue[organization]
	switch {
	case !busy:
		r.queue[organization] = nil
		return nil, nil
	case len(waiting) >= reportsWaiting:
		return nil, ErrManyReports
	}
	turn := make(chan struct{}, 1)
	r.queue[organization] = append(waiting, turn)
	return turn, nil
}

// leave ends a report, and begins the one that waits longest.
func (r *reports) leave(organization uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting := r.queue[organization]; len(waiting) > 0 {
		waiting[0] <- struct{}{}
		r.queue[organization] = waiting[1:]
		return
	}
	delete(r.queue, organization)
}

// quit gives a place in the queue up, and returns false if it is no longer in it.
func (r *reports) quit(organization uuid.UUID, turn chan struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, waiting := range r.queue[organization] {
		if waiting == turn {
			r.queue[organization] = append(r.queue[organization][:i:i], r.queue[organization][i+1:]...)
			return true
		}
	}
	return false
}

// ErrManyReports refuses a report while too many of the organization wait, or have waited too long.
var ErrManyReports = errors.New("other usage reports of your organization are being made")

// reportsWaiting is how many reports of an organization wait for the one under way, and reportWait how long.
const (
	reportsWaiting = 8
	reportWait     = 20 * time.Second
)
