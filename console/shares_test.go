package console

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

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
	if f.leave(first); len(f.looks) != 1 || f.looks["b"] == nil {
		t.Errorf("%d looks are kept for one viewer", len(f.looks))
	}
}

func TestSpendingsAreBounded(t *testing.T) {
	t.Parallel()
	f, now := newFleets(mostCached, func(string) {}), time.Now()
	own, other := uuid.New(), spentOf{uuid.New(), uuid.NewString()}
	f.spendingsOf(other, now)
	for i := range 2 * mostOwnSpent {
		f.spendingsOf(spentOf{own, uuid.NewString()}, now.Add(time.Duration(i)))
	}
	if n := len(f.byAgent.known); n != mostOwnSpent+1 || f.byAgent.known[other] == nil {
		t.Errorf("%d are kept of agents, want %d with that of the other organization", n, mostOwnSpent+1)
	}
	first := spentOf{organization: uuid.New()}
	kept := f.spendingsOf(first, now)
	kept.reading = make(chan struct{}) // under way
	for i := range 2 * mostSpent {
		f.spendingsOf(spentOf{organization: uuid.New()}, now.Add(time.Duration(i)))
	}
	if len(f.spent.known) != mostSpent || f.spendingsOf(first, now) != kept {
		t.Errorf("%d are kept", len(f.spent.known))
	}
	for _, s := range f.spent.known {
		s.reading = make(chan struct{})
	}
	last, failed := f.spendingsOf(spentOf{organization: own}, now).latest(api{}, now)
	if last != nil || failed != manySpent || len(f.spent.known) != mostSpent {
		t.Errorf("without room: %v, %q, %d are kept", last, failed, len(f.spent.known))
	}
}

func TestPagesOfOneOrganizationAreSortedOneAtATime(t *testing.T) {
	t.Parallel()
	w, b, _ := sampled(t, viewer)
	cache := w.console.fleets.of(uuid.MustParse(w.org))
	cache.sorting.Lock()
	shown := make(chan struct{})
	go func() { defer close(shown); b.get(agents + "?sort=name") }()
	select {
	case <-shown:
		t.Error("it does not wait for the other page")
	case <-time.After(300 * time.Millisecond):
	}
	cache.sorting.Unlock()
	<-shown
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
