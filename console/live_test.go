package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
	stale  bool // an update that was read said so
}

// watch opens the stream that a page asks for.
func (b *browser) watch(path string) *watching {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil))(b.t)
	request.Header.Set(refreshHeader, "1") // which means nothing for a stream
	for _, cookie := range b.cookies {
		request.AddCookie(cookie)
	}
	answered := must(http.DefaultTransport.RoundTrip(request))(b.t)
	w := &watching{t: b.t, lines: make(chan string, 1000), status: answered.StatusCode, stop: stop}
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

// read reads the stream until a line is as wanted.
func (w *watching) read(what string, wanted func(line string) bool) {
	w.t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case line, more := <-w.lines:
			if more && wanted(line) {
				return
			}
			if !more {
				w.t.Fatalf("the stream ended before %s", what)
			}
		case <-deadline:
			w.t.Fatalf("not in %v: %s", patience, what)
		}
	}
}

// until reads updates until one is as wanted.
func (w *watching) until(what string, wanted func(message) bool) {
	w.t.Helper()
	w.read(what, func(line string) bool {
		text, isData := strings.CutPrefix(line, "data: ")
		var m message
		if !isData || json.Unmarshal([]byte(text), &m) != nil {
			return false
		}
		w.stale = w.stale || m.Stale
		return wanted(m)
	})
}

// patch reads updates until one has a patch as wanted, and returns that.
func (w *watching) patch(what string, wanted func(patch) bool) (found patch) {
	w.t.Helper()
	w.until(what, func(m message) bool {
		at := slices.IndexFunc(m.Patches, wanted)
		if at >= 0 {
			found = m.Patches[at]
		}
		return at >= 0
	})
	return found
}

func (w *watching) line(want string) {
	w.t.Helper()
	w.read(want, func(line string) bool { return line == want })
}

// liveOf returns the address of a page's updates.
func (a *answer) liveOf() string {
	a.t.Helper()
	for body := range a.elements("body") {
		return attribute(body, "data-live")
	}
	return ""
}

func TestBarsMoveAndEventsAndStatesComeAsTheyHappen(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	id := ids["session"]
	var live *watching
	for _, path := range []string{sessions, ids.path(session)} {
		live = b.watch(b.get(path).liveOf())
		charged := w.asAdmin("POST", "/v1/sessions/"+id+"/actions", map[string]any{"value_usd": 0.5})
		want := count(int64(charged["action_count"].(float64)))
		live.patch("the charge", func(p patch) bool {
			return p.ID == id && p.Text["actions"] == want && p.Bars["value"].Parts[1] == 2_000_000
		})
	}
	w.asAdmin("POST", "/v1/sessions/"+id+"/suspend", map[string]any{"reason": "<b>"})
	told, suspended := false, false
	live.until("the suspension", func(m message) bool {
		suspended = suspended || len(m.Patches) == 1 && m.Patches[0].State == statusSuspended
		told = told || slices.ContainsFunc(m.News, func(n item) bool { return n.Type == "session.suspended" && strings.Contains(n.Details, "<b>") })
		return told && suspended
	})
}

func TestAListShowsWhatEventsChange(t *testing.T) {
	t.Parallel()
	w, b, ids := sampled(t, viewer)
	address := b.get(sessions).liveOf()
	live := b.watch(address)
	live.patch("the first update", func(patch) bool { return true })
	w.newSession(ids["agent"], map[string]any{"parent_session_id": ids["session"], "max_actions": 3, "max_value_usd": 4})
	live.patch("what is delegated", func(p patch) bool { return p.ID == ids["session"] && p.Text["delegated"] == "$4.00" })
	w.asAdmin("POST", "/v1/agents/"+ids["agent"]+"/revoke", map[string]any{})
	live.patch("the revocation", func(p patch) bool { return p.State == "revoked" })
	isStale := func(m message) bool { return m.Stale }
	if !live.stale {
		live.until("that the list has another session", isStale)
	}
	b.watch(address).until("what came before it was live", isStale)
}

func TestTheCursorOfAPageBeginsWithItsFirstSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	agent := w.newAgent("scout")
	var made []string
	for range 5 {
		made = append(made, w.newSession(agent, nil))
	}
	shown := map[string]*watched{made[1]: {}, made[3]: {}, made[2]: {}}
	var listed []struct{ ID string }
	w.good("GET", query("/v1/sessions", "limit", "3", "cursor", cursorAt(shown)), nil, &listed, "X-API-Key", w.keys[viewer])
	wantEqual(t, "the list", listed, []struct{ ID string }{{made[3]}, {made[2]}, {made[1]}})
}

func TestViewersShareALookUntilAnEventIsAboutIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	id := w.sample()["session"]
	f := &follower{viewers: map[*viewing]struct{}{}, stats: newStats()}
	a, now := api{host: w.console.host, key: w.keys[viewer]}, time.Now()
	read := func(at time.Time) int64 { return must(f.look(a, id, at))(t).ActionCount }
	first := read(now)
	w.asAdmin("POST", "/v1/sessions/"+id+"/actions", map[string]any{})
	wantEqual(t, "a look that is fresh", read(now.Add(lookFresh/2)), first)
	wantEqual(t, "one that is not", read(now.Add(lookFresh)), first+1)
	w.asAdmin("POST", "/v1/sessions/"+id+"/actions", map[string]any{})
	f.tell([]eventRow{{Type: "session.limit_warning", SessionID: id}})
	wantEqual(t, "a look after an event", read(now.Add(lookFresh)), first+2)
	// What strangers make long is not kept.
	wantEqual(t, "its metadata", f.looks[id].info.Metadata, nil)
	wantEqual(t, "its scopes", f.looks[id].info.Scopes, nil)
	_, err := f.look(a, idOf(1), now)
	wantEqual(t, "an unknown session is not found", isNotFound(err), true)
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
			wantEqual(t, "the session in the event", p.ID, own)
		}
		return len(m.Patches) == 1
	})
}

// briefKey gives viewers an API key that lives for an hour, and returns its id.
func (w *world) briefKey() (id string) {
	w.t.Helper()
	made := w.asAdmin("POST", "/v1/api-keys", map[string]any{"name": "brief", "role": "viewer", "expires_in_seconds": 3600})
	w.keys[viewer] = made["api_key"].(string)
	return made["id"].(string)
}

// ends are the ways in which a viewer's sign-in ends, by what the organization or its operator does.
var ends = map[string]func(w *world, key string){
	"a rotation": func(w *world, key string) {
		w.asAdmin("POST", "/v1/api-keys/"+key+"/rotate", map[string]any{"grace_seconds": 300})
	},
	"a deletion": func(w *world, key string) { w.asAdmin("DELETE", "/v1/api-keys/"+key, map[string]any{}) },
	"its time":   func(w *world, _ string) { w.mini.SetTime(time.Now().Add(2 * time.Hour)) },
	"suspension": func(w *world, _ string) {
		must(w.store.Suspend(w.t.Context(), uuid.MustParse(w.org)))(w.t)
		must(0, w.store.ReadSuspensions(w.t.Context()))(w.t) // as the instance does every 2 seconds
	},
}

func TestTheEndOfASignInEndsItsStream(t *testing.T) {
	t.Parallel()
	for how, end := range ends {
		for page, sessions := range map[string]int{"with a session": 1, "without": 0} {
			t.Run(how+", "+page, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, settings{})
				key := w.briefKey()
				ids := w.sample()
				b := w.as(t, viewer)
				live := b.watch(liveAt([]string{ids["session"]}[:sessions], "agent", ids["agent"]))
				live.line("retry: 3000")
				end(w, key)
				live.line("event: over")
				for _, b := range []*browser{b, w.browser(t)} { // another stream of it, and that of a stranger
					got := b.get(liveAt(nil)).want(http.StatusOK) // a browser gives up after any other answer
					wantEqual(t, "Content-Type", got.header.Get("Content-Type"), "text/event-stream")
					wantEqual(t, "the stream", got.text, streamOver)
					wantEqual(t, "Set-Cookie", got.header.Values("Set-Cookie"), nil) // another tab may have signed in meanwhile
				}
				if how == "suspension" {
					return
				}
				b.get(Prefix).want(http.StatusOK).says("API key")
				wantEqual(t, "how many cookies the browser keeps", len(b.cookies), 0)
			})
		}
	}
}

func TestNoEventIsToldAfterTheEndOfASignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, settings{})
	key := w.briefKey()
	ids := w.sample()
	other := w.as(t, operator).watch(liveAt(nil, "agent", ids["agent"])) // whose key the follower goes on with
	other.line("retry: 3000")
	live := w.as(t, viewer).watch(liveAt(nil, "agent", ids["agent"]))
	live.line(":")
	w.asAdmin("DELETE", "/v1/api-keys/"+key, map[string]any{})
	w.asAdmin("POST", "/v1/agents/"+ids["agent"]+"/suspend", map[string]any{"reason": "late"})
	for line := range live.lines {
		wantEqual(t, "it shows what happened after its end", strings.Contains(line, "late"), false)
	}
	other.until("the suspension", func(m message) bool {
		return len(m.News) > 0 && strings.Contains(m.News[len(m.News)-1].Details, "late")
	})
}

func TestPagesThatAreLiveAreBounded(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	b.get(Prefix)
	first := b.watch(liveAt(nil))
	for range mostViewers - 1 {
		wantEqual(t, fmt.Sprint("one of ", mostViewers), b.watch(liveAt(nil)).status, http.StatusOK)
	}
	wantEqual(t, "one more", b.watch(liveAt(nil)).status, http.StatusTooManyRequests)
	first.stop()
	f := w.follower()
	await(t, "a viewer who left counts no more", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.viewers) < mostViewers
	})
}
