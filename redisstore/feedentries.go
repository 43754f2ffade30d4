package redisstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/event"
)

// trailEvent reads an entry of a trail. One that cannot be read becomes events.lost: it must not block those after it.
func trailEvent(entry redis.XMessage) Event {
	fields := make([]any, 0, 2*len(entry.Values))
	for name, value := range entry.Values {
		fields = append(fields, name, value)
	}
	e, err := readEvent(&reply{Values: []any{entry.ID, fields}})
	if err != nil || e.Type == "" || strings.ContainsAny(e.Type, " \n") {
		return lostEvent(entry.ID)
	}
	return e
}

// lostEvent stands for the event with the id, which cannot be delivered.
func lostEvent(id string) Event {
	return Event{ID: id, Type: EventsLost, Time: timeOfEvent(id), Actor: event.Actor{Type: event.ByKey}}
}

// nextEventID returns the id that follows an event's directly.
func nextEventID(id string) string {
	parsed, _ := parseEventID(id)
	return strconv.FormatUint(parsed.ms, 10) + "-" + strconv.FormatUint(parsed.sequence+1, 10)
}

// timeOfEvent returns the time in an event's id.
func timeOfEvent(id string) event.Timestamp {
	parsed, _ := parseEventID(id)
	return event.Timestamp(time.UnixMilli(int64(parsed.ms))) //nolint:gosec // ms since 1970, of Redis's clock
}
