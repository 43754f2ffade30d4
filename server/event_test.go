package server_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestATrailReadsTheSameToKeyAndAgentOnEachInstance(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		w.newSession(nil)
		there := w.through(w.another(t))
		want := w.get(w.eventsPath(), asKey(w.key)).is(200)
		wantEqual(t, "the trail", typesOf(want.array()), "agent.created token.issued session.created")
		wantEqual(t, "Content-Type", want.header.Get("Content-Type"), "application/json")
		for _, at := range []tenant{w, there} {
			for _, as := range []option{asKey(w.key), access} {
				wantSameAnswer(t, want, at.get(w.eventsPath(), as))
				wantSameAnswer(t, want, at.get("/v1/agents/"+strings.ToUpper(w.agent.id)+"/events", as))
				head := at.ask("HEAD", w.eventsPath()+"?wait=30", nil, as).is(200)
				if len(head.body) > 0 || head.header.Get("Content-Length") != strconv.Itoa(len(want.body)) {
					t.Errorf("HEAD: %d bytes, Content-Length %s, want %d", len(head.body), head.header.Get("Content-Length"), len(want.body))
				}
			}
		}
	})
}

// A stream is refused as a list is, before it begins.
func TestAStreamOfATrailIsItsOrganizationsAndItsOwnAgents(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		other := w.newTenant()
		tokens, stream := w.exchange(), header("Accept", "text/event-stream")
		for _, by := range []option{asKey(other.key), asAgent(other.exchange().access), asAgent(w.exchangeFor(w.newAgent()).access)} {
			foreign := w.get(w.eventsPath(), by, stream).refused(404, "not_found")
			wantSameAnswer(t, foreign, w.get("/v1/agents/"+uuid.NewString()+"/events", by, stream))
		}
		w.get(w.eventsPath(), stream).refused(401, "missing_credentials")
		w.get(w.eventsPath(), asKey(newKeyOf(uuid.MustParse(w.org))), stream).refused(401, "invalid_api_key")
		w.revoke()
		w.get(w.eventsPath(), asAgent(tokens.access), stream).refused(401, "invalid_token")
		if got := typesOf(w.get(w.eventsPath(), asKey(w.key)).is(200).array()); !strings.HasSuffix(got, "agent.revoked") {
			t.Errorf("the trail of a revoked agent is %s", got)
		}
	})
}

// FuzzListQuery has many more.
func TestAQueryThatATrailDoesNotKnowIsRefusedByItsParameter(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		callers := []option{asKey(w.key), asAgent(w.exchange().access)}
		for query, field := range map[string]string{
			"foo=1": "foo", "cursor=x": "cursor", "status=active": "status", "After=1-0": "After", "last-event-id=1-0": "last-event-id",
			"limit=0": "limit", "limit=201": "limit", "limit=": "limit", "limit=x": "limit", "limit=1&limit=1": "limit",
			"wait=-1": "wait", "wait=31": "wait", "wait=": "wait", "wait": "wait", "wait=99999999999999999999": "wait", "wait=0&limit=1&wait=0": "wait",
			"after=": "after", "after": "after", "after=1": "after", "after=1-0%00": "after", "after=$": "after", "after=" + w.agent.id: "after",
			"after=1-0&after=1-0": "after", "after=18446744073709551615-18446744073709551615": "after",
		} {
			for _, as := range callers {
				w.get(w.eventsPath()+"?"+query, as).invalid(field)
				w.get(w.eventsPath()+"?"+query, as, header("Accept", "text/event-stream")).invalid(field)
			}
		}
		for _, query := range []string{"", "limit=1", "limit=200", "wait=0", "wait=30", "after=0-0", "after=0-1",
			"after=18446744073709551614-18446744073709551615&wait=0"} {
			for _, as := range callers {
				w.get(w.eventsPath()+"?"+query, as).is(200)
			}
		}
	})
}

func TestATrailIsFollowedForwardToItsEnd(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for range 51 {
			w.change()
		}
		access := asAgent(w.exchange().access) // event 53
		all := w.get(w.eventsPath()+"?limit=200", asKey(w.key)).is(200).ids()
		if len(all) != 53 {
			t.Fatalf("%d events", len(all))
		}
		w.wantPages(w.eventsPath(), access, all[:50], all[50:])
		w.wantPages(w.eventsPath()+"?limit=1&after="+all[50], asKey(w.key), all[51:52], all[52:])
		link := w.get(w.eventsPath()+"?limit=30&wait=1", access).is(200).header.Get("Link")
		wantEqual(t, "Link", link, "<"+w.eventsPath()+"?limit=30&wait=1&after="+all[29]+`>; rel="next"`)
	})
}

func TestWaitingEndsWithTheFirstEventOfAnyInstance(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there := w.through(w.another(t))
		w.get(w.eventsPath()+"?wait=30", asKey(w.key)).is(200) // what is there already; the client gives up after 20 s
		fastest := time.Hour
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			path := w.eventsPath() + "?wait=30&limit=1&after=" + w.trail().newest
			var answers []<-chan *response
			for range 8 {
				answers = append(answers, w.getLater(path, as))
			}
			other := w.newTenant() // whose events wake no waiter
			other.change()
			changed, at := there.change(), time.Now()
			for _, answer := range answers {
				r := (<-answer).is(200)
				if got := r.array(); len(got) != 1 || got[0]["request_id"] != changed.header.Get("X-Request-Id") {
					t.Errorf("woken by %s", r.body)
				}
			}
			fastest = min(fastest, time.Since(at))
		}
		if fastest > 2*time.Second { // the better of two tries: a busy machine may delay one
			t.Errorf("woken %s after the change", fastest)
		}
	})
}

func TestWaitingInVainIsAnsweredWithNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		path := w.eventsPath() + "?after=" + w.trail().newest
		for wait, atLeast := range map[string]time.Duration{"&wait=1": time.Second, "&wait=0": 0, "": 0} {
			began := time.Now()
			r := w.get(path+wait, asKey(w.key)).is(200)
			if took := time.Since(began); string(r.body) != "[]" || r.header.Get("Link") != "" || took < atLeast || took > atLeast+5*time.Second {
				t.Errorf("%q: %s, Link %q, after %s", wait, r.body, r.header.Get("Link"), took)
			}
		}
	})
}

// shutDown ends an instance and fails the test unless that is prompt.
func shutDown(t *testing.T, on *instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	must(0, on.server.Shutdown(ctx))(t)
}

func TestAStreamNeedsTheAcceptHeader(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	if head := w.ask("HEAD", w.eventsPath(), nil, asKey(w.key), header("Accept", "text/event-stream")).is(200); len(head.body) > 0 {
		t.Errorf("HEAD has a body of %d bytes", len(head.body))
	}
	w.ask("HEAD", w.eventsPath(), nil, header("Accept", "text/event-stream")).is(401)
	for accept, streamed := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false, "text/event-streams": false, "xtext/event-stream": false,
		"application/json;q=1;x=\"text/event-stream\"": false,
		"text/event-stream":                            true, "TEXT/Event-Stream": true, "text/event-stream;q=0.9": true, " text/event-stream ; charset=utf-8": true,
		"application/json, text/event-stream": true, "text/event-stream,*/*": true,
	} {
		stream := w.stream(t, w.eventsPath(), asKey(w.key), header("Accept", accept))
		kind := "application/json"
		if streamed {
			kind = "text/event-stream"
		}
		if got := stream.answer.Header.Get("Content-Type"); got != kind || stream.answer.StatusCode != http.StatusOK {
			t.Errorf("Accept %q: %d %s, want %s", accept, stream.answer.StatusCode, got, kind)
		}
	}
}
