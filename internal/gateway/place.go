package gateway

import (
	"errors"
	"net/http"
	"sync"

	"github.com/google/uuid"
)

// places bounds the calls in progress, of all and of each organization. Of the last eighth an organization gets a place only while it has
// less than an equal share, so that one that takes all it can leaves room for the others.
type places struct {
	mu   sync.Mutex
	all  int
	held map[uuid.UUID]int // without those that hold none
}

var (
	errPlacesFull  = errors.New("the gateway has as many calls in progress as it can take")
	errPlacesOfOne = errors.New("your organization has as many calls in progress as the gateway allows one")
	errArriving    = errors.New("too many requests of the agent arrive at once")
)

// acquire takes a place, which release gives back. Its error says which bound is reached.
func (p *places) acquire(organization uuid.UUID, most, mostOfOne int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.held[organization]
	sharers := len(p.held)
	if own == 0 {
		sharers++
	}
	isScarce := p.all >= most-most/8
	switch {
	case own >= mostOfOne:
		return errPlacesOfOne
	case p.all >= most, isScarce && own >= max(most/sharers, 1):
		return errPlacesFull
	}
	p.all++
	p.held[organization]++
	return nil
}

func noPlace(err error) *refusal {
	return refuse(http.StatusTooManyRequests, "rate_limited", err.Error()).retryAfter(1)
}

func (p *places) release(organization uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.held[organization]--; p.held[organization] == 0 {
		delete(p.held, organization)
	}
}

func (p *places) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
