package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"remit/internal/event"
)

// Event is one entry of an agent's audit trail.
type Event = event.Event

var listEvents = newScript("records/list_events", reads)

// Events returns at most limit of the agent's events after the one with the id, and whether there are more. after is ""
// to start at the oldest stored event, else an id that ValidEventID accepts. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownAgent, ErrOrganizationSuspended.
func (s *Store) Events(ctx context.Context, c Caller, agent uuid.UUID, after string, limit int) ([]Event, bool, error) {
	if c.Token != nil && s.Suspended(c.Token.Organization) { // an event stream may outlive the check of its request
		return nil, false, ErrOrganizationSuspended
	}
	act, err := s.actOnAgent(ctx, c, agent, nil)
	if err != nil {
		return nil, false, err
	}
	r, err := s.client.Run(ctx, act.flow, listEvents, []string{s.keys.agent(agent), s.keys.events(agent)},
		act.organization, act.family, after, limit+1)
	if act.family != "" {
		err = act.errorFor(err)
	}
	if err != nil {
		return nil, false, err
	}
	page := r.List(0)
	if page.Err != nil {
		return nil, false, page.Err
	}
	more := len(page.Values) > limit
	events := make([]Event, min(len(page.Values), limit))
	for i := range events {
		if events[i], err = readEvent(page.List(i)); err != nil {
			return nil, false, err
		}
		events[i].Complete(act.organization, agent)
	}
	return events, more, nil
}

// ValidEventID says whether an event can have this id. The greatest stream id is not valid: Redis refuses to read after it.
func ValidEventID(id string) bool {
	parsed, valid := parseEventID(id)
	return valid && parsed != eventID{math.MaxUint64, math.MaxUint64}
}

// eventID is the id of an entry of a Redis stream: ms since 1970 and a number among those of the same ms.
type eventID struct{ ms, sequence uint64 }

func parseEventID(id string) (eventID, bool) {
	ms, sequence, _ := strings.Cut(id, "-")
	high, errHigh := strconv.ParseUint(ms, 10, 64)
	low, errLow := strconv.ParseUint(sequence, 10, 64)
	return eventID{high, low}, errHigh == nil && errLow == nil && len(id) <= maxEventID
}

// maxEventID is the length of the longest id that is written without zeros before it; Redis refuses more than 127.
const maxEventID = len("18446744073709551615-18446744073709551615")

// isLater says whether the event with this id is later than the other. "" is earlier than every event.
func isLater(id, after string) bool {
	a, _ := parseEventID(id)
	b, _ := parseEventID(after)
	return a.ms > b.ms || a.ms == b.ms && a.sequence > b.sequence
}

// readEvent reads an event's id and its names and values.
func readEvent(entry *reply) (Event, error) {
	id, fields := entry.Text(0), entry.List(1)
	e, err := event.Read(id, func(yield func(name, text string) bool) {
		for i := 0; i+1 < len(fields.Values) && yield(fields.Text(i), fields.Text(i+1)); i += 2 {
		}
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", errReply, err)
	}
	return e, cmp.Or(entry.Err, fields.Err, err)
}
