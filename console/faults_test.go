package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// spoil makes the list of agents unreadable, and returns what mends it.
func (w *world) spoil() (mend func()) {
	w.t.Helper()
	direct := redis.NewClient(&redis.Options{Addr: w.mini.Addr()})
	w.t.Cleanup(func() { _ = direct.Close() })
	for _, key := range w.mini.Keys() {
		if strings.Contains(key, "oa:") {
			must(direct.Rename(w.t.Context(), key, key+".away").Result())(w.t)
			must(direct.Set(w.t.Context(), key, "no index", 0).Result())(w.t)
			return func() { must(direct.Rename(w.t.Context(), key+".away", key).Result())(w.t) }
		}
	}
	w.t.Fatal("there is no list of agents")
	return nil
}

func TestTheSwitchWorksWhenTheAgentsCannotBeCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	defer w.spoil()()
	page := w.as(t, operator).get(stopPath).want(200).says("cannot be read now", "Stop all agents")
	if !page.hasForm(stopPath) {
		t.Error("the page has no switch")
	}
}

func TestTheOverviewShowsTheRestWhenAPartCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	mend := w.spoil()
	w.as(t, viewer).get(Prefix).want(200).says("The agents cannot be read now", "Held", "$2.00", "–")
	mend()
	w.overviewSays(w.as(t, viewer), "Agents 1")
}

func TestSpendingThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	s := w.console.fleets.spendingsOf(spentOf{organization: uuid.New()}, time.Now())
	for deadline := time.Now().Add(patience); ; {
		last, failed := s.latest(api{host: w.console.host, key: "rmk_x"}, time.Now())
		if failed != "" && last == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it fails without a word")
		}
	}
}

func TestAFollowerThatCannotBeginTriesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.sample()
	b := w.as(t, viewer)
	b.get(agents).want(200)
	visitor := &visit{console: w.console, now: time.Now(), signIn: signIn{APIKey: w.keys[viewer]}}
	visitor.who.Organization = uuid.MustParse(w.org)
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	f := must(w.console.follow(visitor))(t)
	time.Sleep(100 * time.Millisecond) // in which it fails
	w.mini.SetError("")
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		f.mu.Lock()
		caught, asked := f.caught, len(f.stats.asked)
		f.mu.Unlock()
		if caught && asked == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 15 s: caught up %t, %d requests", caught, asked)
		}
	}
}

func TestTheEndOfAFollowerEndsItsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	live := w.as(t, viewer).watch(liveAt(nil))
	w.console.followers.mu.Lock()
	f := w.console.followers.known[uuid.MustParse(w.org)]
	w.console.followers.mu.Unlock()
	f.dismiss()
	for deadline := time.After(patience); ; {
		select {
		case _, more := <-live.lines:
			if !more {
				return
			}
		case <-deadline:
			t.Fatal("the stream goes on without its follower")
		}
	}
}

func TestARetiredFollowerForgetsOnlyItself(t *testing.T) {
	t.Parallel()
	c, of := &Console{}, uuid.New()
	old, young := &follower{console: c, organization: of}, &follower{used: time.Now()}
	c.followers.known = map[uuid.UUID]*follower{of: young}
	if old.retire(true); c.followers.known[of] != young {
		t.Error("it forgot its successor")
	}
}

func TestTheFollowerThatWasUsedLongestAgoMakesRoom(t *testing.T) {
	t.Parallel()
	var f followers
	f.known = map[uuid.UUID]*follower{}
	var oldest uuid.UUID
	for i := range 5 {
		id := uuid.New()
		f.known[id] = &follower{used: time.Unix(int64(100+i), 0)}
		switch i {
		case 0: // a viewer looks
			f.known[id].viewers = map[*viewing]struct{}{{}: {}}
		case 1:
			oldest = id
		}
	}
	one := f.known[oldest]
	if !f.makeRoom(netip.Addr{}) || f.known[oldest] != nil || one.isWanted() || len(f.known) != 4 {
		t.Errorf("%d are left; the oldest is wanted %t", len(f.known), one.isWanted())
	}
	f.known = map[uuid.UUID]*follower{uuid.New(): {viewers: map[*viewing]struct{}{{}: {}}}}
	if f.makeRoom(netip.Addr{}) {
		t.Error("one with a viewer made room")
	}
}

func TestAServerThatStopsIsNotAskedForEventsAgainAndAgain(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	w := newWorld(t, settings{log: &log})
	w.caughtUp(w.as(t, viewer))
	before := strings.Count(log.String(), "route=/v1/events ")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // in which it would go on
	if n := strings.Count(log.String(), "route=/v1/events ") - before; n > 5 {
		t.Errorf("%d requests for events during the stop", n)
	}
}

func TestSigningOutNeedsNoStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, viewer)
	csrf := b.csrf()
	w.mini.SetError("LOADING Redis is loading the dataset in memory")
	b.post(signOutPath, "csrf", "wrong").want(http.StatusForbidden)
	b.post(signOutPath, "csrf", csrf).want(http.StatusSeeOther)
	w.mini.SetError("")
	if len(b.cookies) > 0 {
		t.Errorf("the browser keeps %v", b.cookies)
	}
	if got := w.browser(t).post(signOutPath).want(http.StatusSeeOther).header.Get("Clear-Site-Data"); got != `"cache"` {
		t.Errorf("Clear-Site-Data is %s", got)
	}
}

func TestAPanicInTheBackgroundIsLoggedAndEndsNothing(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	w := newWorld(t, settings{log: &log})
	s := w.console.fleets.spendingsOf(spentOf{organization: uuid.New()}, time.Now())
	for range 2 {
		s.next = time.Time{}
		if last, failed := s.latest(api{}, time.Now()); last != nil || failed == "" { // without a server it panics
			t.Errorf("%v, %q", last, failed)
		}
	}
	for deadline := time.Now().Add(patience); strings.Count(log.String(), "the console panicked") != 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log: %s", log.String())
		}
	}
	if text := w.browser(t).get("/metrics").text; !strings.Contains(text, "\nremit_panics_total 2\n") {
		t.Error("the metrics do not count them")
	}
}

func TestAShutdownWaitsForAStop(t *testing.T) {
	t.Parallel()
	c := Console{stops: stops{known: map[uuid.UUID]*stopJob{}}}
	end := make(chan struct{})
	job := must(c.stops.begin(uuid.New(), false, time.Now(), func() (int64, error) { <-end; return 0, errors.New("x") }))(t)
	waited := make(chan struct{})
	go func() { defer close(waited); c.Wait(context.Background()) }()
	select {
	case <-waited:
		t.Error("it does not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(end)
	<-job.done
	<-waited
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
