package console

import (
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-json"
	"github.com/google/uuid"
)

// countedTypes are the events that stats count.
var countedTypes = []string{
	"session.limit_reached", "agent.limit_reached", "session.would_refuse", "session.limit_warning", "budget.threshold", "session.ended", "session.expired",
	"session.more_requested", "session.request_approved", "session.request_denied", "transaction.expired", "token.reuse_detected", "events.lost",
	"lease.granted", "lease.settled", "lease.expired", "agent.revoked",
}

// stats are what the overview tells of the last day, counted from events.
type stats struct {
	hours   map[int64]map[string]int64 // by hour since 1970: refusals by limit, and other events by type
	pending map[string]askedMore       // requests for more that wait for an answer, by id
	decided []decidedMore              // and those that no longer do, the last one last
	near    []string                   // sessions near a limit, the last one last

	leases leases

	reached map[string]*reached // by session
}

// reached are the limits of a session that were counted.
type reached struct {
	observes bool             // so nothing is refused there, and nothing counted
	hours    map[string]int64 // since 1970, by limit
	last     int64            // the latest of them
}

// askedMore is where a request for more is.
type askedMore struct {
	session, id string
	at          time.Time
	agent       uuid.UUID
}

const (
	wouldRefuse = "session.would_refuse"

	mostPending = 1000
	mostNear    = 50

	mostReached = 10_000
	dayHours    = 24
)

func newStats() stats {
	return stats{
		hours: map[int64]map[string]int64{}, pending: map[string]askedMore{},
		reached: map[string]*reached{},
	}
}

func (s *stats) count(e eventRow) {
	switch e.Type {
	case wouldRefuse:
		s.add(e, wouldRefuse)
		s.observe(e)
		s.noteNear(e.SessionID)
	case "session.limit_reached", "agent.limit_reached":
		s.reach(e)
		s.noteNear(e.SessionID)
	case "session.limit_warning", "budget.threshold":
		s.noteNear(e.SessionID)
	case "session.more_requested":
		if len(s.pending) < mostPending {
			s.pending[e.AskedID] = askedOf(e)
		}
	case "session.request_approved":
		s.decide(askedOf(e), statusApproved, e.OccurredAt)
	case "session.request_denied":
		s.decide(askedOf(e), statusDenied, e.OccurredAt)
	case "agent.revoked":
		s.lapse(e.OccurredAt, func(asked askedMore) bool { return asked.agent.String() == e.AgentID })
	case "lease.granted":
		s.leases.grant(e, time.Now())
	case "lease.settled", "lease.expired":
		s.leases.settle(e)
	case "session.ended", "session.expired":
		s.forgetSession(e.SessionID, e.OccurredAt)
	case "transaction.expired", "token.reuse_detected", "events.lost":
		s.add(e, e.Type)
	}
}

// reach counts a limit that was reached, unless the session observes.
func (s *stats) reach(e eventRow) {
	limit := e.limit()
	if e.SessionID == "" {
		s.add(e, limit)
		return
	}
	if of := s.reachedBy(e); of == nil || !of.observes {
		hour := s.add(e, limit)
		if of != nil {
			of.hours[limit] = hour
		}
	}
}

// observe takes back what reach counted of a session before that turned out to observe.
func (s *stats) observe(e eventRow) {
	of := s.reachedBy(e)
	if of == nil {
		return
	}
	for limit, hour := range of.hours {
		if s.hours[hour][limit]--; s.hours[hour][limit] <= 0 {
			delete(s.hours[hour], limit)
		}
	}
	of.observes, of.hours = true, map[string]int64{}
}

// reachedBy returns what an event's session has reached; nil when there are too many sessions.
func (s *stats) reachedBy(e eventRow) *reached {
	of := s.reached[e.SessionID]
	if of == nil && len(s.reached) < mostReached {
		of = &reached{hours: map[string]int64{}}
		s.reached[e.SessionID] = of
	}
	if of != nil {
		of.last = max(of.last, e.hour())
	}
	return of
}

func (e eventRow) hour() int64 { return e.OccurredAt.Unix() / 3600 }

// limit returns the limit that an event names.
func (e eventRow) limit() string {
	var data struct {
		Limit string `json:"limit"`
	}
	_ = json.Unmarshal(e.Data, &data) // without one the limit is ""
	return data.Limit
}

// add counts an event in its hour, which it returns.
func (s *stats) add(e eventRow, what string) int64 {
	hour := e.hour()
	if s.hours[hour] == nil {
		s.hours[hour] = map[string]int64{}
		s.forgetBefore(hour - dayHours)
	}
	s.hours[hour][what]++
	return hour
}

func (s *stats) forgetBefore(hour int64) {
	maps.DeleteFunc(s.hours, func(old int64, _ map[string]int64) bool { return old < hour })
	maps.DeleteFunc(s.reached, func(_ string, of *reached) bool { return of.last < hour })
}

func (s *stats) noteNear(session string) {
	if session == "" {
		return
	}
	s.dropNear(session)
	if s.near = append(s.near, session); len(s.near) > mostNear {
		s.near = s.near[1:]
	}
}

func (s *stats) dropNear(session string) {
	s.near = slices.DeleteFunc(s.near, func(id string) bool { return id == session })
}

func (s *stats) forgetSession(session string, ended time.Time) {
	delete(s.reached, session)
	s.dropNear(session)
	s.lapse(ended, func(asked askedMore) bool { return asked.session == session })
}

// last returns what was counted in the last day.
func (s *stats) last(now time.Time) map[string]int64 {
	sum := map[string]int64{}
	for hour, counted := range s.hours {
		if hour > now.Unix()/3600-dayHours {
			for what, n := range counted {
				sum[what] += n
			}
		}
	}
	return sum
}
