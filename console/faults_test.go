package console

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/test/serviceproc"
)

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
		return f.caught && len(f.stats.asked) == 1
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

func TestSigningOutNeedsNoStore(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	csrf := b.csrf()
	w.mini.SetError(loading)
	b.post(signOutPath, "csrf", "wrong").want(http.StatusForbidden)
	b.post(signOutPath, "csrf", csrf).want(http.StatusSeeOther)
	w.mini.SetError("")
	wantEqual(t, "how many cookies the browser keeps", len(b.cookies), 0)
	wantEqual(t, "Clear-Site-Data", w.browser(t).post(signOutPath).want(http.StatusSeeOther).header.Get("Clear-Site-Data"), `"cache"`)
}

func TestAPanicInTheBackgroundIsLoggedAndEndsNothing(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	w := newWorld(t, settings{log: &log})
	s := w.console.fleets.spendingsOf(spentOf{organization: uuid.New()}, time.Now())
	for range 2 {
		s.next = time.Time{}
		if last, failed := s.latest(api{}, time.Now()); last != nil || failed == "" { // without a server it panics
			t.Errorf("%v, %q", last, failed)
		}
	}
	await(t, "the log tells of them", func() bool { return strings.Count(log.String(), "the console panicked") == 2 })
	w.browser(t).get("/metrics").says("\nremit_panics_total 2\n")
}

func TestARequestOfHTTP10IsNotFromThisMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	host := strings.TrimPrefix(w.url, "http://")
	for version, want := range map[string]string{"1.1": "200", "1.0": "403"} {
		conn := must(net.Dial("tcp", host))(t)
		fmt.Fprintf(conn, "GET /console HTTP/%s\r\nHost: %s\r\nConnection: close\r\n\r\n", version, host)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if conn.Close(); err != nil || !strings.Contains(line, " "+want+" ") {
			t.Errorf("HTTP/%s: %q %v, want %s", version, line, err, want)
		}
	}
}
