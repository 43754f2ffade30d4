package feed

import (
	"testing"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"remit/internal/event"
	"remit/redisstore/internal/kernel"
)

// A session whose lifetime is shortened again and again takes few entries, and one before each new expiry.
func TestEverShorterLifetimesLeaveFewEntries(t *testing.T) {
	t.Parallel()
	looks, err := lru.New[uuid.UUID, int64](1)
	if err != nil {
		t.Fatal(err)
	}
	const shortenings = 3000
	session, began := uuid.New(), time.Now()
	var entries []int64 // when they are due
	change := func(at, previous, expires time.Time) {
		var d dueEntries
		e := kernel.Event{Session: session, Time: event.Timestamp(at)}
		e.PreviousExpires, e.Expires = event.Timestamp(previous), event.Timestamp(expires)
		d.add(uuid.Nil, e, looks)
		d.stored(looks)
		for entry := range d.entries {
			entries = append(entries, entry.at)
		}
	}
	expires := began.Add(time.Hour)
	change(began, time.Time{}, expires)
	for i := range shortenings {
		next := expires.Add(-time.Second)
		change(began.Add(time.Duration(i)*time.Millisecond), expires, next)
		if expires = next; entries[len(entries)-1] > expires.UnixMilli() {
			t.Fatalf("nothing is entered before %s, after %d changes", expires, i)
		}
	}
	if len(entries) > 10 {
		t.Errorf("%d entries after %d changes", len(entries), shortenings)
	}
}
