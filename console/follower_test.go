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
	if again := w.follow(); again != first {
		t.Error("a second viewer gets a follower of its own")
	}
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
	if len(w.due) > mostWatched || len(w.news) > mostNews || w.changed != urgent {
		t.Errorf("%d due, %d news, changed %d", len(w.due), len(w.news), w.changed)
	}
	if kept := len(w.news[0].Data); kept > mostExcerpt+1 {
		t.Errorf("%d bytes of an event are kept", kept)
	}
	if details := itemOf(w.news[0]).Details; len(details) > 3000 {
		t.Errorf("an item has %d bytes", len(details))
	}
	if address := liveAt(slices.Collect(maps.Keys(w.watched))); strings.Count(address, "%2C") != mostWatched-1 {
		t.Errorf("a page's address of updates is %s", address)
	}
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
	if f.countKept([]eventRow{asked, approved}, 2) || len(f.stats.asked) != 1 {
		t.Errorf("with an event to come: caught up %t, %d requests", f.caught, len(f.stats.asked))
	}
	if !f.countKept([]eventRow{approved}, 3) || len(f.stats.asked) != 0 {
		t.Errorf("with all of them: caught up %t, %d requests", f.caught, len(f.stats.asked))
	}
	if f.tell([]eventRow{event(4, "session.more_requested")}); len(f.stats.asked) != 1 {
		t.Errorf("of one that is sent then %d requests are counted", len(f.stats.asked))
	}
}
