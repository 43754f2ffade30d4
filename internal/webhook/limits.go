package webhook

import (
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"remit/internal/outbound"
)

// limits bound what one instance does at once for all organizations.
type limits struct {
	organizations     int // that it delivers for
	slowOrganizations int // of these, those whose receivers do not answer soon
	requests          int // under way to receivers that answer soon, and as many to the others
	requestsOf        int // under way for one organization

	soon  time.Duration // an attempt that takes as long is slow, and an organization all of whose requests wait as long for their hosts
	apart time.Duration // the least between two requests of an organization, and between two to a host
	turn  time.Duration // that an organization keeps its place when others wait for one
}

var usualLimits = limits{
	organizations: 512, slowOrganizations: 384, requests: 1024, requestsOf: 32, soon: 2 * time.Second, turn: 10 * time.Second,
	apart: time.Second / 100,
}

const (
	// socketsOfRequest is the most that one request has open: two while it asks for the addresses of a name, or connects to one of
	// each family at once.
	socketsOfRequest = 2
	// LeastSockets is how many a Deliverer needs: for a request to a receiver that answers soon, one to another, and one connection
	// that waits for its next request.
	LeastSockets = 2*socketsOfRequest + 1
	// MostSockets is how many sockets a Deliverer has open at most.
	MostSockets = 2*1024*socketsOfRequest + idleConnections
)

// within returns the limits of a deliverer that may have so many sockets open, and how many of its connections may be idle. One organization
// never takes more than a quarter of the places.
func (l limits) within(sockets int) (_ limits, idle int) {
	idle = min(max(sockets*idleConnections/MostSockets, 1), idleConnections)
	l.requests = min(max((sockets-idle)/2/socketsOfRequest, 1), l.requests)
	l.requestsOf = min(max(l.requests/4, 1), l.requestsOf)
	return l, idle
}

// maxSlow is how many slow webhooks and organizations an instance remembers.
const maxSlow = 1 << 15

// places are taken by requests that are under way. Slow receivers keep a place for up to requestTime.
type places struct {
	limits

	lanes *outbound.Lanes
	known *lru.Cache[uuid.UUID, struct{}] // webhooks and organizations whose last attempts were slow
}

func newPlaces(l limits) *places {
	known, _ := lru.New[uuid.UUID, struct{}](maxSlow) // it fails only for a size that is not positive
	return &places{limits: l, lanes: outbound.NewLanes(l.requests), known: known}
}

func (p *places) isSlow(id uuid.UUID) bool { return p.known.Contains(id) }

func (p *places) noteSlow(id uuid.UUID, slow bool) {
	if slow {
		p.known.Add(id, struct{}{})
	} else {
		p.known.Remove(id)
	}
}

// turns are the places of organizations for which others wait.
type turns struct {
	wanted atomic.Int64 // places that organizations wait for
	ending atomic.Int64 // organizations that are giving up theirs
}

// ends says whether an organization that has had its place since then is to give it to another. If so, its caller notes with ended
// that it has.
func (t *turns) ends(since time.Time, turn time.Duration) bool {
	if time.Since(since) < turn || t.wanted.Add(-1) < 0 {
		return false
	}
	t.ending.Add(1)
	return true
}

func (t *turns) ended() { t.ending.Add(-1) }

// want notes how many organizations wait for a place.
func (t *turns) want(waiting int) { t.wanted.Store(int64(waiting) - t.ending.Load()) }
