package console

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/test/serviceproc"
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
	wantEqual(t, "requests with an event to come", len(f.stats.pending), 1)
	wantEqual(t, "with all of them it has caught up", f.countKept([]eventRow{approved}, 3), true)
	wantEqual(t, "requests with all of them", len(f.stats.pending), 0)
	f.tell([]eventRow{event(4, "session.more_requested")})
	wantEqual(t, "requests with one that is sent then", len(f.stats.pending), 1)
}

func TestOneClientKeepsNoOtherFromLiveUpdates(t *testing.T) {
	t.Parallel()
	stranger, other, newcomer := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.3")
	var f followers
	f.known = map[uuid.UUID]*follower{}
	watching := map[*follower]*viewing{}
	for _, from := range append(slices.Repeat([]netip.Addr{stranger}, 7), other) {
		w := &viewing{wake: make(chan struct{}, 1), check: &keyCheck{}}
		one := &follower{from: from, viewers: map[*viewing]struct{}{w: {}}}
		f.known[uuid.New()], watching[one] = one, w
	}
	wantEqual(t, "the client that has most of them gets another one", f.makeRoom(stranger), false)
	if !f.makeRoom(newcomer) || len(f.known) != 7 {
		t.Fatalf("%d are left", len(f.known))
	}
	for one, w := range watching {
		if one.dropped && (one.from != stranger || !w.dismissed) {
			t.Errorf("that of %s made room; its viewer is told %t", one.from, w.dismissed)
		}
	}
}

func TestAFollowersEndEndsItsStreamsAndDismissesWhoComesLater(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	live := b.watch(liveAt(nil))
	w.follower().dismiss()
	for range live.lines { // until the stream ends
	}
	f := &follower{console: w.console, viewers: map[*viewing]struct{}{}, key: "rmk_x"}
	watching := w.joined(f, "rmk_x", time.Now())
	f.run() // its key is none
	wantEqual(t, "its viewer is sent away", watching.dismissed, true)
	wantEqual(t, "who comes later is sent away", w.joined(f, "rmk_x", time.Now()).dismissed, true)
}

func TestALookIsForgottenWithItsViewers(t *testing.T) {
	t.Parallel()
	f := &follower{viewers: map[*viewing]struct{}{}, looks: map[string]*look{"a": {}, "b": {}}}
	first := &viewing{visit: &visit{}, check: &keyCheck{}, watched: map[string]*watched{"a": {}, "b": {}}}
	second := &viewing{visit: &visit{}, check: &keyCheck{}, watched: map[string]*watched{"b": {}}}
	f.join(first)
	f.join(second)
	f.leave(first)
	wantEqual(t, "the sessions whose looks are kept for one viewer", slices.Collect(maps.Keys(f.looks)), []string{"b"})
}

func TestTheOverviewIsShownWhenTooManyOrganizationsAreFollowed(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	w.console.followers.known = map[uuid.UUID]*follower{}
	for range mostFollowed {
		w.console.followers.known[uuid.New()] = &follower{viewers: map[*viewing]struct{}{{}: {}}}
	}
	b.get(Prefix).want(http.StatusOK).says("still being read", "Agents 1", "Held at least $2.00")
	wantEqual(t, "a stream", b.watch(liveAt(nil)).status, http.StatusServiceUnavailable)
}

func TestAFollowerThatCannotBeginTriesAgain(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	b.get(agents).want(200)
	w.mini.SetError(loading)
	w.failAndMend(w.follow())
}

const loading = "LOADING Redis is loading the dataset in memory"

// failAndMend lets a follower fail for a moment, and returns when it has caught up with the sample's one request.
func (w *world) failAndMend(f *follower) {
	time.Sleep(100 * time.Millisecond) // in which it fails
	w.mini.SetError("")
	await(w.t, "it has caught up", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.caught && len(f.stats.pending) == 1
	})
}

// follow begins a follower of the organization, or returns the one that there is.
func (w *world) follow() *follower {
	w.t.Helper()
	visitor := &visit{console: w.console, now: time.Now(), signIn: signIn{APIKey: w.keys[viewer]}}
	visitor.who.Organization = uuid.MustParse(w.org)
	return must(w.console.follow(visitor))(w.t)
}

func (w *world) follower() *follower {
	w.console.followers.mu.Lock()
	defer w.console.followers.mu.Unlock()
	return w.console.followers.known[uuid.MustParse(w.org)]
}

func TestARetiredFollowerForgetsOnlyItself(t *testing.T) {
	t.Parallel()
	c, of := &Console{}, uuid.New()
	old, young := &follower{console: c, organization: of}, &follower{used: time.Now()}
	c.followers.known = map[uuid.UUID]*follower{of: young}
	old.retire(true)
	wantEqual(t, "it leaves its successor", c.followers.known[of] == young, true)
}

func TestTheFollowerThatWasUsedLongestAgoMakesRoom(t *testing.T) {
	t.Parallel()
	watched := &follower{used: time.Unix(1, 0), viewers: map[*viewing]struct{}{{}: {}}}
	oldest, young := &follower{used: time.Unix(2, 0)}, &follower{used: time.Unix(3, 0)}
	f := followers{known: map[uuid.UUID]*follower{uuid.New(): young, uuid.New(): oldest, uuid.New(): watched}}
	if !f.makeRoom(netip.Addr{}) || !oldest.dropped || oldest.isWanted() || young.dropped || len(f.known) != 2 {
		t.Errorf("%d are left; the oldest is dropped %t, and wanted %t", len(f.known), oldest.dropped, oldest.isWanted())
	}
	if !f.makeRoom(netip.Addr{}) || !young.dropped || f.makeRoom(netip.Addr{}) || len(f.known) != 1 {
		t.Errorf("%d are left: one with a viewer makes no room", len(f.known))
	}
}

func TestAServerThatStopsIsNotAskedForEventsAgainAndAgain(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	w := newWorld(t, settings{log: &log})
	w.caughtUp(w.as(t, viewer))
	before := strings.Count(log.String(), "route=/v1/events ")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(0, w.server.Shutdown(ctx))(t)
	time.Sleep(500 * time.Millisecond) // in which it would go on
	wantAtMost(t, "requests for events during the stop", strings.Count(log.String(), "route=/v1/events ")-before, 5)
}
