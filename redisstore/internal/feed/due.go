package feed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// The leader of a feed reads every event, so it knows what will be due, and Redis stores that in the step that stores the events: an
// operation costs nothing more for it, and nothing is forgotten with an instance. See package redisstore, due.go.

// What is to be looked at when an entry is due.
const (
	DueSession  = 's' // the session
	DueParts    = 'p' // what the session has set aside
	DueSessions = 'a' // the sessions of the agent
)

// partsSettle is how long after a part was set aside a look finds its session, or that it was never created.
const partsSettle = 45 * time.Second

// dueEntry is what is to be looked at, and when.
type dueEntry struct {
	id uuid.UUID
	at int64 // ms since 1970
	of byte  // DueSession, DueParts or DueSessions
}

// dueEntries are what events make due.
type dueEntries struct {
	entries map[dueEntry]struct{}
	first   map[uuid.UUID]int64 // of sessions, when the first of theirs is due
}

// add adds what an event of the agent makes due. A look at a session enters the next one, so a session needs an entry for the first only;
// looks has when that is, as far as this instance knows.
func (d *dueEntries) add(agent uuid.UUID, e kernel.Event, looks *lru.Cache[uuid.UUID, int64]) {
	entry := dueEntry{id: e.Session, of: DueSession}
	switch {
	case e.Type == "agent.revoked":
		entry = dueEntry{id: agent, of: DueSessions}
	case e.Type == "session.delegated":
		entry.of, entry.at = DueParts, ms(e.Time)+partsSettle.Milliseconds()
	case e.Session == uuid.Nil:
		return
	case e.Lasts > 0:
		entry.at = ms(e.Time) + e.Lasts.Milliseconds()
	case !e.Expires.IsZero():
		entry.at = ms(e.Expires)
	default:
		return
	}
	if d.entries == nil {
		d.entries, d.first = map[dueEntry]struct{}{}, map[uuid.UUID]int64{}
	}
	if entry.of == DueSession {
		look, known := d.first[entry.id]
		if !known {
			look, _ = looks.Get(entry.id)
		}
		// A look after the event sees what the event's operation wrote.
		if look <= entry.at && look > ms(e.Time)+clocksDiffer.Milliseconds() {
			return
		}
		if !e.PreviousExpires.IsZero() { // a look halfway, so that ever shorter lifetimes leave few entries
			entry.at -= (entry.at - ms(e.Time)) / 2
		}
		d.first[entry.id] = entry.at
	}
	d.entries[entry] = struct{}{}
}

// stored notes that Redis has the entries. What was noted of their sessions is over, or later.
func (d *dueEntries) stored(looks *lru.Cache[uuid.UUID, int64]) {
	for session, at := range d.first {
		looks.Add(session, at)
	}
}

// clocksDiffer is more than the clocks of servers differ by.
const clocksDiffer = 10 * time.Second

func ms(t event.Timestamp) int64 { return time.Time(t).UnixMilli() }

// text returns the entries as scripts take them; see lua/records/include/due.lua.
func (d *dueEntries) text() string {
	var text strings.Builder
	for e := range d.entries {
		text.WriteString(DueAt(e.of, e.id, e.at))
	}
	return text.String()
}

// DueAt returns an entry as scripts take it: at is ms since 1970.
func DueAt(of byte, id uuid.UUID, at int64) string {
	return fmt.Sprintf("%013d%c", min(max(at, 0), farthest), of) + string(id[:])
}

// farthest is the last time of 13 digits.
const farthest = 9_999_999_999_999

// DueEntry is one of a chunk's: what is to be looked at.
type DueEntry struct {
	Of byte
	ID uuid.UUID
}

// dueHead is how many bytes of a chunk stand before its entries; see lua/records/include/due.lua.
const dueHead = 1 + 13

// ReadDue returns the entries of a chunk, each once.
func ReadDue(chunks []string) ([]DueEntry, error) {
	var entries []DueEntry
	seen := map[DueEntry]bool{}
	for _, chunk := range chunks {
		for packed := range slices.Chunk([]byte(chunk[min(dueHead, len(chunk)):]), 1+len(uuid.UUID{})) {
			id, err := uuid.FromBytes(packed[1:])
			if err != nil {
				return nil, fmt.Errorf("%w: %q is no entry", redisclient.ErrReply, packed)
			}
			if e := (DueEntry{packed[0], id}); !seen[e] {
				seen[e] = true
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// noteDue may go to another server than the feed. A failover there must not lose it.
var noteDue = kernel.NewScript("records/note_due", redisclient.Writes)

// NoteDue notes that something is due in an organization at a time in ms since 1970, as text.
func (d *Feeds) NoteDue(ctx context.Context, organization uuid.UUID, at string) error {
	_, err := d.Client.Run(ctx, kernel.OwnFlow, noteDue, []string{d.Keys.DueQueue(), d.Keys.DueVersions()}, organization, at)
	return err
}
