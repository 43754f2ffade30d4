package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOneFollowerServesAllViewersOfAnOrganizationAndEndsWithoutThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	first := w.follow()
	wantEqual(t, "a second viewer gets the same", w.follow() == first, true)
	first.mu.Lock()
	first.used = time.Now().Add(-2 * idleTime)
	first.mu.Unlock()
	w.newAgent("scout") // an event wakes it
	await(t, "a follower without viewers ends", func() bool { return w.follower() == nil })
}

func TestAFollowerGoesOnWithAnotherViewersKey(t *testing.T) {
	t.Parallel()
	f := &follower{key: "ended", viewers: map[*viewing]struct{}{}}
	wantEqual(t, "without viewers it goes on", f.useAnother(), false)
	for _, key := range []string{"ended", "other"} {
		f.viewers[&viewing{visit: &visit{signIn: signIn{APIKey: key}}}] = struct{}{}
		wantEqual(t, "with one of the key "+key+" it goes on", f.useAnother(), key == "other")
	}
	wantEqual(t, "its key", f.key, "other")
}

func TestWhatAViewerIsToldOfIsBounded(t *testing.T) {
	t.Parallel()
	w := &viewing{agent: "a", lists: true, watched: map[string]*watched{}, wake: make(chan struct{}, 1)}
	for i := range 2 * mostWatched {
		id := fmt.Sprint("s", i)
		w.watched[id] = &watched{}
		w.note(eventRow{Type: "session.suspended", AgentID: "a", SessionID: id, Data: []byte(strings.Repeat("x", 1<<16))})
		w.note(eventRow{Type: "session.created", AgentID: "b", SessionID: "new" + id})
	}
	wantAtMost(t, "sessions that are due", len(w.due), mostWatched)
	wantAtMost(t, "news", len(w.news), mostNews)
	wantEqual(t, "the urgency of what changed", w.changed, urgent)
	wantAtMost(t, "the bytes of an event that are kept", len(w.news[0].Data), mostExcerpt+1)
	wantAtMost(t, "the bytes of an item", len(itemOf(w.news[0]).Details), 3000)
	wantEqual(t, "commas in a page's address of updates", strings.Count(liveAt(slices.Collect(maps.Keys(w.watched))), "%2C"), mostWatched-1)
}

func TestEventsAreCountedOnceAndInTheirOrder(t *testing.T) {
	t.Parallel()
	f := &follower{viewers: map[*viewing]struct{}{}, stats: newStats()}
	event := func(n int64, kind string) eventRow {
		return eventRow{Sequence: n, Type: kind, AskedID: "a", SessionID: "s"}
	}
	asked, approved := event(2, "session.more_requested"), event(3, "session.request_approved")
	f.begin(2)
	f.tell([]eventRow{approved})
	wantEqual(t, "with an event to come it has caught up", f.countKept([]eventRow{asked, approved}, 2), false)
	wantEqual(t, "requests with an event to come", len(f.stats.asked), 1)
	wantEqual(t, "with all of them it has caught up", f.countKept([]eventRow{approved}, 3), true)
	wantEqual(t, "requests with all of them", len(f.stats.asked), 0)
	f.tell([]eventRow{event(4, "session.more_requested")})
	wantEqual(t, "requests with one that is sent then", len(f.stats.asked), 1)
}
