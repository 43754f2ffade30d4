package feed

import (
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// TrailEvent reads an entry of a trail. One that cannot be read becomes events.lost: it must not block those after it.
func TrailEvent(entry redis.XMessage) kernel.Event {
	fields := make([]any, 0, 2*len(entry.Values))
	for name, value := range entry.Values {
		fields = append(fields, name, value)
	}
	e, err := kernel.ReadEvent(&redisclient.Reply{Values: []any{entry.ID, fields}})
	if err != nil || e.Type == "" || strings.ContainsAny(e.Type, " \n") {
		return lostEvent(entry.ID)
	}
	return e
}

// lostEvent stands for the event with the id, which cannot be delivered.
func lostEvent(id string) kernel.Event {
	return kernel.Event{ID: id, Type: kernel.EventsLost, Time: timeOfEvent(id), Actor: event.Actor{Type: event.ByKey}}
}

// nextEventID returns the id that follows an event's directly.
func nextEventID(id string) string {
	parsed, _ := kernel.ParseEventID(id)
	return strconv.FormatUint(parsed.Ms, 10) + "-" + strconv.FormatUint(parsed.Sequence+1, 10)
}

// timeOfEvent returns the time in an event's id.
func timeOfEvent(id string) event.Timestamp {
	parsed, _ := kernel.ParseEventID(id)
	return event.Timestamp(time.UnixMilli(int64(parsed.Ms))) //nolint:gosec // ms since 1970, of Redis's clock
}
