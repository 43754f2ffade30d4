package console

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// watching is a browser's stream of updates.
type watching struct {
	t      *testing.T
	lines  chan string
	status int
	stop   context.CancelFunc
}

// watch opens the stream that a page asks for.
func (b *browser) watch(path string) *watching {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil))(b.t)
	for _, cookie := range b.cookies {
		request.AddCookie(cookie)
	}
	answered, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		b.t.Fatal(err)
	}
	w := &watching{b.t, make(chan string, 1000), answered.StatusCode, stop}
	go func() {
		defer answered.Body.Close()
		defer close(w.lines)
		for scanner := bufio.NewScanner(answered.Body); scanner.Scan(); {
			w.lines <- scanner.Text()
		}
	}()
	b.t.Cleanup(stop)
	return w
}

// until reads updates until one is as wanted.
func (w *watching) until(what string, wanted func(message) bool) {
	w.t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case line, more := <-w.lines:
			text, isData := strings.CutPrefix(line, "data: ")
			var m message
			if isData && json.Unmarshal([]byte(text), &m) == nil && wanted(m) {
				return
			}
			if !more {
				w.t.Fatalf("the stream ended before %s", what)
			}
		case <-deadline:
			w.t.Fatalf("not in 10 s: %s", what)
		}
	}
}

// liveOf returns the address of a page's updates.
func (a *answer) liveOf() string {
	a.t.Helper()
	for body := range a.elements("body") {
		return attribute(body, "data-live")
	}
	return ""
}

func TestASessionsBarsMoveAsItIsCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	id := w.sample()["session"]
	b := w.as(t, viewer)
	for _, path := range []string{sessions, sessions + "/" + id} {
		live := b.watch(b.get(path).liveOf())
		charged := w.asAdmin("POST", "/v1/sessions/"+id+"/actions", map[string]any{"value_usd": 0.5})
		want := count(int64(charged["action_count"].(float64)))
		live.until("the charge", func(m message) bool {
			for _, p := range m.Patches {
				if p.ID == id && p.Text["actions"] == want && p.Bars["value"].Parts[1] == 2_000_000 {
					return true
				}
			}
			return false
		})
		live.stop()
	}
}

func TestEventsAndStatesComeAsTheyHappen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	ids := w.sample()
	b := w.as(t, viewer)
	live := b.watch(b.get(sessions + "/" + ids["session"]).liveOf())
	live.until("the first update", func(m message) bool { return len(m.Patches) == 1 })
	w.asAdmin("POST", "/v1/sessions/"+ids["session"]+"/suspend", map[string]any{"reason": "<b>"})
	told, suspended := false, false
	live.until("the suspension", func(m message) bool {
		for _, p := range m.Patches {
			suspended = suspended || p.State == statusSuspended
		}
		for _, n := range m.News {
			told = told || n.Type == "session.suspended" && strings.Contains(n.Details, "<b>")
		}
		return told && suspended
	})
}

func TestAViewerIsToldOfItsOwnObjectsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	other := newWorld(t, settings{redis: w.mini})
	foreign := other.sample()["session"]
	own := w.sample()["session"]
	live := w.as(t, viewer).watch(liveAt([]string{foreign, own}))
	live.until("its own session", func(m message) bool {
		for _, p := range m.Patches {
			if p.ID != own {
				t.Errorf("it is told of %s", p.ID)
			}
		}
		return len(m.Patches) == 1
	})
}

func TestTheEndOfASignInEndsItsStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	made := w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "brief", "role": "viewer"})
	w.keys[viewer] = made["api_key"].(string)
	live := w.as(t, viewer).watch(liveAt([]string{w.sample()["session"]}))
	live.until("the first update", func(m message) bool { return len(m.Patches) == 1 })
	w.asAdmin("POST", "/v1/api-keys/"+made["id"].(string)+"/rotate", map[string]any{"grace_seconds": 300})
	for deadline := time.After(15 * time.Second); ; {
		select {
		case line := <-live.lines:
			if line == "event: over" {
				return
			}
		case <-deadline:
			t.Fatal("the stream goes on after the key's rotation")
		}
	}
}

func TestPagesThatAreLiveAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	b := w.as(t, viewer)
	b.get(Prefix)
	var f *follower
	first := b.watch(liveAt(nil))
	for range mostViewers - 1 {
		if got := b.watch(liveAt(nil)); got.status != http.StatusOK {
			t.Fatalf("one of %d: %d", mostViewers, got.status)
		}
	}
	if got := b.watch(liveAt(nil)); got.status != http.StatusTooManyRequests {
		t.Errorf("one more: %d", got.status)
	}
	first.stop()
	w.console.followers.mu.Lock()
	f = w.console.followers.known[uuid.MustParse(w.org)]
	w.console.followers.mu.Unlock()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		f.mu.Lock()
		n := len(f.viewers)
		f.mu.Unlock()
		if n < mostViewers {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a viewer who left still counts")
		}
	}
}

func TestWithoutASignInThereIsNoStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	w.browser(t).get(liveAt(nil)).want(http.StatusSeeOther)
}
