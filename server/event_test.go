package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/token"
)

func TestATrailReadsTheSameToKeyAndAgentOnEachInstance(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		w.newSession(nil)
		there := w.through(api.another(t))
		want := w.get(w.eventsPath(), asKey(w.key)).is(200)
		if got := typesOf(want.array()); got != "agent.created token.issued session.created" {
			t.Errorf("the trail is %s", got)
		}
		if kind := want.header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("Content-Type %q", kind)
		}
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
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		tokens, stream := w.exchange(), header("Accept", "text/event-stream")
		for _, by := range []option{asKey(other.key), asAgent(other.exchange().access), asAgent(w.exchangeFor(w.newAgent()).access)} {
			foreign := w.get(w.eventsPath(), by, stream).refused(404, "not_found")
			wantSameAnswer(t, foreign, w.get("/v1/agents/"+uuid.NewString()+"/events", by, stream))
		}
		w.get(w.eventsPath(), stream).refused(401, "missing_credentials")
		w.get(w.eventsPath(), asKey(newKeyOf(uuid.MustParse(w.org))), stream).refused(401, "invalid_api_key")
		w.get(w.eventsPath(), asAgent(w.expired(t)), stream).refused(401, "invalid_token")
		w.get(w.eventsPath(), asAgent(tokens.access), asKey(w.key), stream).refused(400, "invalid_request")
		w.get("/v1/agents/x/events", asKey(w.key), stream).invalid("id")
		w.revoke()
		w.get(w.eventsPath(), asAgent(tokens.access), stream).refused(401, "invalid_token")
		if got := w.get(w.eventsPath(), asKey(w.key)).is(200).array(); got[len(got)-1]["type"] != "agent.revoked" {
			t.Errorf("the trail of a revoked agent ends with %v", got[len(got)-1])
		}
	})
}

func TestAQueryThatATrailDoesNotKnowIsRefusedByItsParameter(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		callers := []option{asKey(w.key), asAgent(w.exchange().access)}
		for query, field := range map[string]string{
			"foo=1": "foo", "cursor=x": "cursor", "status=active": "status", "After=1-0": "After", "last-event-id=1-0": "last-event-id",
			"limit=0": "limit", "limit=201": "limit", "limit=": "limit", "limit=x": "limit", "limit=%2B5": "limit", "limit=1&limit=1": "limit",
			"wait=-1": "wait", "wait=31": "wait", "wait=": "wait", "wait": "wait", "wait=1.5": "wait", "wait=5s": "wait", "wait=%2B1": "wait",
			"wait=256": "wait", "wait=99999999999999999999": "wait", "wait=1&wait=1": "wait", "wait=0&limit=1&wait=0": "wait",
			"after=": "after", "after": "after", "after=1": "after", "after=1-": "after", "after=-1": "after", "after=-": "after", "after=1-0-0": "after",
			"after=a-b": "after", "after=1-x": "after", "after=-1-0": "after", "after=%2B1-0": "after", "after=(1-0": "after", "after=$": "after",
			"after=1_0": "after", "after=1-0%20": "after", "after=1-0%00": "after", "after=" + w.agent.id: "after",
			"after=18446744073709551616-0": "after", "after=0-18446744073709551616": "after", "after=1-0&after=1-0": "after",
			"after=" + strings.Repeat("0", 200) + "1-0":       "after",
			"after=18446744073709551615-18446744073709551615": "after",
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
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for range 51 {
			w.change()
		}
		access := asAgent(w.exchange().access) // event 53
		all := w.get(w.eventsPath()+"?limit=200", asKey(w.key)).is(200).ids()
		if !slices.IsSortedFunc(all, laterEvent) || len(all) != 53 {
			t.Fatalf("%d events, sorted: %t", len(all), slices.IsSortedFunc(all, laterEvent))
		}
		for _, as := range []option{asKey(w.key), access} {
			w.wantPages(w.eventsPath(), as, all[:50], all[50:])
			w.wantPages(w.eventsPath()+"?wait=0&limit=30", as, all[:30], all[30:])
			w.wantPages(w.eventsPath()+"?limit=53", as, all)
			w.wantPages(w.eventsPath()+"?limit=52", as, all[:52], all[52:])
			w.wantPages(w.eventsPath()+"?limit=1&after="+all[50], as, all[51:52], all[52:])
			w.wantPages(w.eventsPath()+"?after="+all[52], as, []string{})
		}
		link := w.get(w.eventsPath()+"?limit=30&wait=1", access).is(200).header.Get("Link")
		if want := "<" + w.eventsPath() + "?limit=30&wait=1&after=" + all[29] + `>; rel="next"`; link != want {
			t.Errorf("Link %s, want %s", link, want)
		}
	})
}

// laterEvent orders the ids of events, whose halves are numbers.
func laterEvent(a, b string) int {
	order := func(id string) string {
		ms, sequence, _ := strings.Cut(id, "-")
		return strings.Repeat("0", 20-len(ms)) + ms + strings.Repeat("0", 20-len(sequence)) + sequence
	}
	return strings.Compare(order(a), order(b))
}

func TestWaitingEndsWithTheFirstEventOfAnyInstance(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		began := time.Now()
		w.get(w.eventsPath()+"?wait=30", asKey(w.key)).is(200)
		if took := time.Since(began); took > time.Second {
			t.Errorf("what is there already is answered after %s", took)
		}
		for _, as := range []option{asKey(w.key), asAgent(w.exchange().access)} {
			path := w.eventsPath() + "?wait=20&limit=1&after=" + w.trail().newest
			answers := make(chan *response, 8)
			for range cap(answers) {
				go func() {
					r, err := w.try("GET", path, nil, as)
					if err != nil {
						t.Error(err)
						r = &response{status: -1}
					}
					answers <- r
				}()
			}
			other := api.newTenant() // whose events wake no waiter
			other.change()
			changed, at := there.change(), time.Now()
			for range cap(answers) {
				r := (<-answers).in(t).is(200)
				if got := r.array(); len(got) != 1 || got[0]["request_id"] != changed.header.Get("X-Request-Id") {
					t.Errorf("woken by %s", r.body)
				}
			}
			if took := time.Since(at); took > 2*time.Second {
				t.Errorf("woken %s after the change", took)
			}
		}
	})
}

func TestWaitingInVainIsAnsweredWithNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path := w.eventsPath() + "?after=" + w.trail().newest
		for wait, atLeast := range map[string]time.Duration{"&wait=1": time.Second, "&wait=0": 0, "": 0} {
			began := time.Now()
			r := w.get(path+wait, asKey(w.key)).is(200)
			if took := time.Since(began); string(r.body) != "[]" || r.header.Get("Link") != "" || took < atLeast || took > atLeast+time.Second {
				t.Errorf("%q: %s, Link %q, after %s", wait, r.body, r.header.Get("Link"), took)
			}
		}
	})
}

// shutDown ends an instance and fails the test unless that is prompt.
func shutDown(t *testing.T, on *instance) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	if err := on.server.Shutdown(ctx); err != nil {
		t.Fatalf("shutdown: %v after %s", err, time.Since(began))
	}
}

// Secret scanners of logs and Redis dumps read trails too.
func TestNoCredentialIsInATrail(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		const private = "what only the agent is to know"
		w := api.newTenant()
		first := w.exchange()
		second := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200))
		used := []string{w.key, w.agent.secret, first.access, first.refresh, second.access, second.refresh, private}
		rotated := w.change()
		w.agent.secret = rotated.text("secret")
		granted := w.grant().is(200).granted(api, agentScopes...)
		newKey := w.post("/v1/organizations/"+w.org+"/api-key/rotate", fields{"grace_seconds": 60}, asKey(w.key)).is(200).text("api_key")
		used = append(used, w.agent.secret, granted.access, granted.refresh, newKey)
		for i, as := range []option{asKey(w.key), asKey(newKey), asAgent(granted.access)} {
			id := w.post("/sessions", fields{"agent_id": w.agent.id, "max_actions": 1}, asKey(newKey),
				header("Idempotency-Key", w.agent.secret[:20]+strconv.Itoa(i))).is(201).text("id")
			w.post("/sessions/"+id+"/actions", fields{"action_type": w.agent.secret}, as).is(200)
			w.post("/sessions/"+id+"/actions", fields{}, as).is(403)
			w.post("/sessions/"+id+"/end", nil, as).is(200)
		}
		begun := w.post("/v1/transactions", fields{"action_type": "a", "pre_state": fields{"k": private}}, asAgent(granted.access)).is(201)
		w.post("/v1/transactions/"+begun.text("id")+"/rollback", fields{"reason": private}, asKey(newKey)).is(200)
		w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(401)
		w.post("/v1/auth/revoke", fields{"refresh_token": granted.refresh}, asAgent(granted.access)).is(200)
		w.revoke()

		trail := w.get(w.eventsPath()+"?limit=200", asKey(newKey)).is(200)
		kept := storedEvents(t, api)
		if n := len(trail.array()); n < 15 || strings.Count(kept, "occurred") > 0 || strings.Count(kept, "request") < n {
			t.Fatalf("%d events: the test proves nothing", n)
		}
		for _, credential := range used {
			for _, form := range formsOf(credential) {
				if strings.Contains(string(trail.body), form) || strings.Contains(kept, form) {
					t.Errorf("the trail has %q of %s", form, credential)
				}
			}
		}
	})
}

// storedEvents returns all that Redis keeps of the service's trails, names and values.
func storedEvents(t *testing.T, api *client) string {
	t.Helper()
	client := redis.NewClient(must(redis.ParseURL(api.on.redis))(t))
	defer client.Close()
	var all strings.Builder
	for _, key := range must(client.Keys(t.Context(), api.on.prefix+"ev:*").Result())(t) {
		for _, entry := range must(client.XRange(t.Context(), key, "-", "+").Result())(t) {
			for name, value := range entry.Values {
				all.WriteString(name + "=" + value.(string) + "\n")
			}
		}
	}
	return all.String()
}

// formsOf returns a credential, its ends and its SHA-256 in all forms that they may be written in.
func formsOf(credential string) []string {
	hash := token.Hash(credential)
	forms := []string{credential[:20], credential[len(credential)-20:]}
	for _, bytes := range [][]byte{[]byte(credential), hash[:]} {
		forms = append(forms, string(bytes), fmt.Sprintf("%x", bytes), fmt.Sprintf("%X", bytes),
			base64.RawStdEncoding.EncodeToString(bytes), base64.RawURLEncoding.EncodeToString(bytes))
	}
	return forms
}

func TestAStreamNeedsTheAcceptHeader(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
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
