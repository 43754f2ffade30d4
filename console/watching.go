package console

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"remit/client"
)

const (
	// pollSoon is the pause between two looks at sessions that change: a charge is no event, so bars must be polled.
	pollSoon = time.Second
	// pollLate is the longest pause between two looks at one that does not.
	pollLate = 8 * time.Second
	// lookFresh is how long viewers share a look at a session, unless an event was about it.
	lookFresh = 900 * time.Millisecond
	// mostLooks bounds the looks that are kept, of all viewers of an organization.
	mostLooks = mostViewers * mostWatched
)

// watched is a session on a page, as the viewer's browser has it. Only the viewer's own goroutine changes it.
type watched struct {
	info  *client.SessionInfo // nil before the first look
	shown figures             // of the last patch
	read  time.Time           // the last look
	next  time.Time           // the next one
	pause time.Duration
	stale bool // an event was about it since
	gone  bool
}

// look is what viewers share of one session.
type look struct {
	mu    sync.Mutex // held while it is read
	at    time.Time
	info  client.SessionInfo
	stale atomic.Bool // an event was about it since
}

// look reads a session with a viewer's key, unless another viewer has just done so.
func (f *follower) look(a api, id string, now time.Time) (client.SessionInfo, error) {
	f.mu.Lock()
	l := f.looks[id]
	if l == nil {
		if f.looks == nil || len(f.looks) >= mostLooks {
			f.looks = map[string]*look{}
		}
		l = &look{}
		f.looks[id] = l
	}
	f.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stale.Swap(false) && now.Sub(l.at) < lookFresh {
		return l.info, nil
	}
	var info client.SessionInfo
	if err := a.get("/v1/sessions/"+id, &info); err != nil {
		l.at = time.Time{}
		return client.SessionInfo{}, err
	}
	info.Metadata, info.Scopes, info.SuspensionReason = nil, nil, "" // no patch has them, and strangers choose their length
	l.info, l.at = info, now
	return info, nil
}

// span is the part of a list of sessions that a page shows. One read tells of all of them what charges change; whatever else
// changes a session is an event, and then the session itself is read.
type span struct {
	status, agent, cursor string
	next                  time.Time
}

// newSpan returns nil for a page that shows no list.
func newSpan(v *visit, shown map[string]*watched) *span {
	if v.queryParam("list") == "" || len(shown) == 0 {
		return nil
	}
	status := v.queryParam("status")
	if !slices.Contains(sessionStatuses, status) {
		status = ""
	}
	return &span{status: status, agent: v.queryParam("of"), cursor: cursorAt(shown)}
}

// cursorAt returns the cursor of a list whose first session is the newest of these. A cursor names the one before, and ids are in
// the order of their bytes.
func cursorAt(shown map[string]*watched) string {
	var newest uuid.UUID
	for text := range shown {
		if id, err := uuid.Parse(text); err == nil && slices.Compare(id[:], newest[:]) > 0 {
			newest = id
		}
	}
	for i := len(newest) - 1; i >= 0; i-- {
		if newest[i]++; newest[i] != 0 {
			break
		}
	}
	return base64.RawURLEncoding.EncodeToString(newest[:])
}

// cursorBefore returns the cursor of a list that begins with what was made before a time: that is in the first 48 bits of an id.
func cursorBefore(t time.Time) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16) //nolint:gosec // after 1970
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// readSpan reads the list, and takes over what charges change.
func (w *viewing) readSpan(now time.Time) error {
	var listed []client.SessionInfo
	path := query("/v1/sessions", "status", w.span.status, "agent_id", w.span.agent, "cursor", w.span.cursor, "limit", fmt.Sprint(mostWatched))
	if _, err := w.visit.api.list(path, &listed); err != nil {
		return err
	}
	w.span.next = now.Add(pollSoon)
	for _, s := range listed {
		shown := w.watched[s.ID]
		if shown == nil || shown.info == nil {
			continue
		}
		shown.stale = shown.stale || shown.info.Status != s.Status // when it ended is in the session itself
		shown.info.Status, shown.info.ExpiresAt = s.Status, s.ExpiresAt
		shown.info.ActionCount, shown.info.MaxActions = s.ActionCount, s.MaxActions
		shown.info.ValueUsed, shown.info.MaxValue = s.ValueUsed, s.MaxValue
		shown.next = shown.read.Add(4 * pollLate)
	}
	return nil
}

// readWatched reads one session, and decides when it is read again.
func (w *viewing) readWatched(f *follower, id string, s *watched, now time.Time) error {
	info, err := f.look(w.visit.api, id, now)
	if isNotFound(err) {
		s.gone = true
		return nil
	}
	if err != nil {
		return err
	}
	if s.info != nil && figuresOf(sessionRow{SessionInfo: *s.info}) == figuresOf(sessionRow{SessionInfo: info}) {
		s.pause = min(2*s.pause, pollLate)
	} else {
		s.pause = pollSoon
	}
	if len(w.watched) == 1 || id == w.session {
		s.pause = pollSoon
	}
	s.info, s.read, s.next, s.stale = &info, now, now.Add(s.pause), false
	return nil
}

// readDue reads what is to be read now: the list, sessions that events were about, and those that are polled one by one. One that
// events tell of all the time is read once a second.
func (w *viewing) readDue(f *follower, due []string, now time.Time) error {
	for _, id := range due {
		if s := w.watched[id]; s != nil {
			s.stale = true
		}
	}
	if w.span != nil && !now.Before(w.span.next) {
		if err := w.readSpan(now); err != nil {
			return err
		}
	}
	for id, s := range w.watched {
		if s.stale { // the list says nothing of that
			s.next = s.read.Add(pollSoon)
		}
		if s.gone || s.next.After(now) {
			continue
		}
		if err := w.readWatched(f, id, s, now); err != nil {
			return err
		}
	}
	return nil
}

// nextRead returns when there is something to read again.
func (w *viewing) nextRead(latest time.Time) time.Time {
	latest = w.refresh.nextLook(latest)
	if w.span != nil && w.span.next.Before(latest) {
		latest = w.span.next
	}
	for _, s := range w.watched {
		if !s.gone && s.next.Before(latest) {
			latest = s.next
		}
	}
	return latest
}
