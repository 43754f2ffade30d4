package console

import (
	"strings"
	"sync"
	"testing"
	"time"

	"remit/test/serviceproc"
)

// joined returns a page of a follower that is live with this API key.
func (w *world) joined(f *follower, key string, now time.Time) *viewing {
	w.t.Helper()
	of := &viewing{
		visit: &visit{console: w.console, signIn: newSignIn(key, now)}, watched: map[string]*watched{},
		wake: make(chan struct{}, 1), check: &keyCheck{at: now},
	}
	if !f.join(of) {
		w.t.Fatal("there is no place")
	}
	return of
}

func TestPagesOfAnAPIKeyShareItsCheckUntilTheNextEvent(t *testing.T) {
	t.Parallel()
	var log serviceproc.Output
	w := newWorld(t, settings{log: &log})
	f, now := &follower{viewers: map[*viewing]struct{}{}, stats: newStats()}, time.Now()
	var pages []*viewing
	for _, key := range []string{w.keys[viewer], w.keys[operator]} {
		for range mostViewers / 2 {
			pages = append(pages, w.joined(f, key, now))
		}
	}
	for _, step := range []struct {
		what   string
		event  int64
		at     time.Duration
		checks int
	}{
		{"after they joined", 0, 0, 0},
		{"after an event", 1, 0, 2},
		{"after the next", 2, 0, 4},
		{"before recheckTime", 2, recheckTime - 1, 4},
		{"after recheckTime", 2, recheckTime, 6},
	} {
		if step.event > f.lastSeen() {
			f.tell([]eventRow{{Sequence: step.event, Type: "session.created"}})
		}
		var all sync.WaitGroup
		for _, page := range pages {
			all.Go(func() {
				wantEqual(t, "the check "+step.what, page.check.of(page.visit, f, now.Add(step.at)), nil)
			})
		}
		all.Wait()
		wantEqual(t, "checks so far, "+step.what, strings.Count(log.String(), "route=page "), step.checks)
	}
}

func TestNothingIsToldWhileASignInCannotBeChecked(t *testing.T) {
	t.Parallel()
	for how, isOver := range map[string]bool{"and then it lives": false, "and then it is over": true} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{})
			w.briefKey()
			ids := w.sample()
			w.as(t, viewer).get(Prefix)
			f := w.awaitSeen(1)
			live := w.as(t, viewer).watch(liveAt(nil, "agent", ids["agent"]))
			live.line(strings.TrimSpace(streamIdle))
			w.mini.SetError(loading)
			f.tell([]eventRow{{Sequence: f.lastSeen() + 1, Type: "agent.suspended", AgentID: ids["agent"], Data: []byte(`{"reason":"late"}`)}})
			for range 2 { // checks that fail
				live.read("an idle line", func(line string) bool {
					wantEqual(t, "while nothing can be checked the stream says "+line, line != "" && line != strings.TrimSpace(streamIdle), false)
					return line != ""
				})
			}
			if !isOver {
				w.mini.SetError("")
				live.until("the event", func(m message) bool { return len(m.News) == 1 && strings.Contains(m.News[0].Details, "late") })
				return
			}
			w.mini.SetTime(time.Now().Add(2 * time.Hour))
			w.mini.SetError("")
			for line := range live.lines {
				wantEqual(t, "it shows an event without a sign-in", strings.Contains(line, "late"), false)
				if line == "event: over" {
					return
				}
			}
			t.Error("the stream does not say that it is over")
		})
	}
}
