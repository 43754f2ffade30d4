package console

import (
	"encoding/base64"
	"time"

	"github.com/goccy/go-json"
)

// countedTypes are the events that stats count.
var countedTypes = []string{
	"session.limit_reached", "agent.limit_reached", "session.would_refuse", "session.limit_warning", "budget.threshold", "session.ended", "session.expired",
	"session.more_requested", "session.request_approved", "session.request_denied", "transaction.expired", "token.reuse_detected", "events.lost",
}

// stats are what the overview tells of the last day, counted from events.
type stats struct {
	hours map[int64]map[string]int64 // by hour since 1970: refusals by limit, and other events by type
	asked map[string]askedMore       // requests for more that wait for an answer, by id
	near  []string                   // sessions near a limit, the last one last
}

// askedMore is where a request for more is.
type askedMore struct {
	session, id string
	at          time.Time
}

const (
	wouldRefuse = "session.would_refuse"

	mostAsked = 1000
	mostNear  = 50
	dayHours  = 24
)

func newStats() stats {
	return stats{hours: map[int64]map[string]int64{}, asked: map[string]askedMore{}}
}

func (s *stats) count(e eventRow) {
	switch e.Type {
	case wouldRefuse:
		s.add(e, wouldRefuse)
		s.noteNear(e.SessionID)
	case "session.limit_reached", "agent.limit_reached":
		s.add(e, e.limit())
		s.noteNear(e.SessionID)
	case "session.limit_warning", "budget.threshold":
		s.noteNear(e.SessionID)
	case "session.more_requested":
		if len(s.asked) < mostAsked {
			s.asked[e.AskedID] = askedMore{e.SessionID, e.AskedID, e.OccurredAt}
		}
	case "session.request_approved", "session.request_denied":
		delete(s.asked, e.AskedID)
	case "session.ended", "session.expired":
		s.forgetSession(e.SessionID)
	case "transaction.expired", "token.reuse_detected", "events.lost":
		s.add(e, e.Type)
	}
}

// limit returns the limit that an event names.
func (e eventRow) limit() string {
	var data struct {
		Limit string `json:"limit"`
	}
	_ = json.Unmarshal(e.Data, &data) // without one the limit is ""
	return data.Limit
}

func (s *stats) add(e eventRow, what string) {
	hour := e.OccurredAt.Unix() / 3600
	for old := range s.hours {
		if old < hour-dayHours {
			delete(s.hours, old)
		}
	}
	if s.hours[hour] == nil {
		s.hours[hour] = map[string]int64{}
	}
	s.hours[hour][what]++
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
	for i, id := range s.near {
		if id == session {
			s.near = append(s.near[:i:i], s.near[i+1:]...)
			return
		}
	}
}

func (s *stats) forgetSession(session string) {
	s.dropNear(session)
	for id, asked := range s.asked {
		if asked.session == session {
			delete(s.asked, id)
		}
	}
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

func decodeBase64(text string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(text) }
