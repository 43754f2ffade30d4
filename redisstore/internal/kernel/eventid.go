package kernel

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"remit/internal/event"
	"remit/internal/redisclient"
)

// EventID is the id of an entry of a Redis stream: ms since 1970 and a number among those of the same ms.
type EventID struct{ Ms, Sequence uint64 }

// ParseEventID reads an event's id, and says whether it is one.
func ParseEventID(id string) (EventID, bool) {
	ms, sequence, _ := strings.Cut(id, "-")
	high, errHigh := strconv.ParseUint(ms, 10, 64)
	low, errLow := strconv.ParseUint(sequence, 10, 64)
	return EventID{high, low}, errHigh == nil && errLow == nil && len(id) <= MaxEventID
}

// MaxEventID is the length of the longest id that is written without zeros before it; Redis refuses more than 127.
const MaxEventID = len("18446744073709551615-18446744073709551615")

// IsLater says whether the event with this id is later than the other. "" is earlier than every event.
func IsLater(id, after string) bool {
	a, _ := ParseEventID(id)
	b, _ := ParseEventID(after)
	return a.Ms > b.Ms || a.Ms == b.Ms && a.Sequence > b.Sequence
}

// ReadEvent reads an event's id and its names and values.
func ReadEvent(entry *redisclient.Reply) (Event, error) {
	id, fields := entry.Text(0), entry.List(1)
	e, err := event.Read(id, func(yield func(name, text string) bool) {
		for i := 0; i+1 < len(fields.Values) && yield(fields.Text(i), fields.Text(i+1)); i += 2 {
		}
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", redisclient.ErrReply, err)
	}
	return e, cmp.Or(entry.Err, fields.Err, err)
}

// Event is one entry of an agent's audit trail.
type Event = event.Event

// EventsLost is the type of an event that stands for events of an agent which its trail had no longer when they were to be
// appended, or which no version could read.
const EventsLost = "events.lost"
