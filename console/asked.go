package console

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"remit/client"
)

// mostDecided bounds the requests for more that no longer wait, of which the follower of an organization knows: those decided last.
const mostDecided = 1000

const (
	statusApproved = "approved"
	statusDenied   = "denied"
	statusLapsed   = "ended" // the session ended first
)

// decidedMore is a request for more that no longer waits.
type decidedMore struct {
	id, session, agent uuid.UUID
	status             string // one of the constants
	at                 time.Time
}

// decide notes that a request no longer waits. If that is known, only the time is noted: that of an event is exact.
func (s *stats) decide(asked askedMore, status string, at time.Time) {
	delete(s.pending, asked.id)
	id, err := uuid.Parse(asked.id)
	session, failed := uuid.Parse(asked.session)
	if err != nil || failed != nil {
		return
	}
	if i := slices.IndexFunc(s.decided, func(d decidedMore) bool { return d.id == id }); i >= 0 {
		s.decided[i].at = at
		return
	}
	if len(s.decided) == mostDecided {
		s.decided = slices.Delete(s.decided, 0, mostDecided/10) // some at once, so that not each one moves all others
	}
	s.decided = append(s.decided, decidedMore{id, session, asked.agent, status, at})
}

// settle notes what the service says of a request that events have waiting.
func (s *stats) settle(asked askedMore, is client.MoreRequest, now time.Time) {
	if slices.Contains(requestStatuses, is.Status) {
		s.decide(asked, is.Status, cmp.Or(is.DecidedAt, now))
	} else {
		delete(s.pending, asked.id) // it is gone with its session
	}
}

// lapse notes that requests no longer wait because their session ended.
func (s *stats) lapse(at time.Time, has func(askedMore) bool) {
	for _, asked := range s.pending {
		if has(asked) {
			s.decide(asked, statusLapsed, at)
		}
	}
}

// askedOf returns where the request for more of an event is.
func askedOf(e eventRow) askedMore {
	agent, _ := uuid.Parse(e.AgentID) // the organization itself asks for nothing
	return askedMore{e.SessionID, e.AskedID, e.OccurredAt, agent}
}

// askedRef is a request for more in the list of all of them.
type askedRef struct {
	askedMore

	status string
}

// requests returns the requests for more with a status and of an agent, "" and uuid.Nil for all: those that wait first, the oldest first,
// then the others, those decided last first.
func (s *stats) requests(status string, agent uuid.UUID) []askedRef {
	var found []askedRef
	if status == "" || status == statusPending {
		for _, asked := range slices.SortedFunc(maps.Values(s.pending), byAge) {
			if agent == uuid.Nil || agent == asked.agent {
				found = append(found, askedRef{asked, statusPending})
			}
		}
	}
	decided := slices.Clone(s.decided)
	slices.Reverse(decided) // a feed mixes the events of agents, so these are only nearly in their order
	slices.SortStableFunc(decided, func(a, b decidedMore) int { return b.at.Compare(a.at) })
	for _, d := range decided {
		if (status == "" || status == d.status) && (agent == uuid.Nil || agent == d.agent) {
			found = append(found, askedRef{askedMore{d.session.String(), d.id.String(), d.at, d.agent}, d.status})
		}
	}
	return found
}

func byAge(a, b askedMore) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) }

// waiting returns how many requests for more of an organization wait, as far as that is known without asking: 0 when it is not.
func (f *followers) waiting(organization uuid.UUID) int64 {
	f.mu.Lock()
	one := f.known[organization]
	f.mu.Unlock()
	if one == nil {
		return 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if !one.caught {
		return 0
	}
	return int64(len(one.stats.pending))
}
