package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// askMore asks for more for a session.
func (w tenant) askMore(session string, wanted fields, options ...option) *response {
	w.t.Helper()
	return w.post("/v1/sessions/"+session+"/requests", fields{"reason": "12 invoices are left"}.with(wanted), options...)
}

func requestPath(session, id string) string { return "/v1/sessions/" + session + "/requests/" + id }

func TestARequestForMoreIsApprovedAndTopsItsSessionUp(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there := w.through(w.another(t))
		access, key, l := asAgent(w.exchange().access), asKey(w.key), w.trail()
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		before := w.session(id)
		l.unread()
		asked := w.askMore(id, fields{"add_actions": 4, "add_value_usd": num("2.5")}, access).is(201)
		pending := fields{"id": anID, "session_id": id, "agent_id": w.agent.id, "status": "pending", "add_actions": 4,
			"add_value_usd": num("2.5"), "reason": "12 invoices are left", "created_at": aboutNow}
		asked.exactly(pending)
		request := asked.text("id")
		l.gains(asked, "agent", fields{"type": "session.more_requested", "session_id": id, "session_request_id": request,
			"data": map[string]any{"add_actions": num("4"), "add_value_usd": num("2.5")}})
		for _, as := range []option{access, key} {
			there.get(asked.header.Get("Location"), as).is(200).exactly(asked.object())
			there.get("/sessions/"+id+"/requests?status=pending", as).is(200).isList(t, asked.object())
			there.get("/sessions/"+id+"/requests?status=denied", as).is(200).isList(t)
		}
		w.wantUsage(before, nil)

		body := fields{"add_actions": 3, "comment": "not all"}
		approved := there.post(requestPath(id, request)+"/approve", body, key).is(200)
		approved.exactly(asked.object().with(fields{"status": "approved", "granted_actions": 3, "granted_value_usd": num("2.5"),
			"comment": "not all", "decided_at": aboutNow}))
		l.gains(approved, "api_key", fields{"type": "session.request_approved", "session_id": id, "session_request_id": request,
			"data": map[string]any{"add_actions": num("3"), "add_value_usd": num("2.5"), "max_actions": num("13"), "max_value_usd": num("7.5")}})
		w.post("/sessions/"+id+"/requests/"+request+"/approve", body, key).is(200).exactly(approved.object())
		w.post(requestPath(id, request)+"/approve", nil, key).refused(409, "request_decided")
		there.post(requestPath(id, request)+"/deny", nil, key).refused(409, "request_decided")
		l.gainsNothing("a decision again")
		w.wantUsage(before, fields{"max_actions": 13, "max_value_usd": num("7.5")})
		w.get("/v1/sessions/"+id+"/requests", access).is(200).isList(t, approved.object())
	})
}

func TestARequestForMoreThatMakesNoSenseIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	access, key := asAgent(w.exchange().access), asKey(w.key)
	id := w.newSession(fields{"max_actions": 1_000_000_000})
	path := requestPath(id, w.askMore(id, fields{"add_actions": 2, "add_value_usd": 1}, access).is(201).text("id"))
	value := requestPath(id, w.askMore(id, fields{"add_value_usd": 1}, access).is(201).text("id"))
	wantNothingWritten(t, w.client, func() {
		w.askMore(id, nil, access).invalid("")
		for _, tooMuch := range []fields{{"add_actions": 3}, {"add_actions": 2}, {}} { // the last two raise it too far
			w.post(path+"/approve", tooMuch, key).invalid("add_actions")
		}
		w.post(path+"/approve", fields{"add_actions": 0, "add_value_usd": num("1.000001")}, key).invalid("add_value_usd")
		w.post(path+"/approve", fields{"add_actions": 0, "add_value_usd": 0}, key).invalid("")
		w.post(value+"/approve", fields{"add_actions": 1}, key).invalid("add_actions")
		w.post(path+"/deny", fields{"add_actions": 1}, key).invalid("add_actions")
		for query, field := range map[string]string{"?wait=61": "wait", "?wait=-1": "wait", "?wait=x": "wait", "?wait=1&wait=1": "wait", "?status=pending": "status"} {
			w.get(path+query, access).invalid(field)
		}
		for query, field := range map[string]string{"?status=open": "status", "?wait=1": "wait", "?limit=1": "limit"} {
			w.get("/sessions/"+id+"/requests"+query, key).invalid(field)
		}
	})
	w.get(path, access).is(200).has(fields{"status": "pending"})
}

// Every waiter, at any instance, gets the decision and every other end of the request.
func TestWaitingForADecisionEndsWithItOnEachInstance(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		do   func(w tenant, session, request string)
		want string
	}{
		"approval": {func(w tenant, session, request string) {
			w.post(requestPath(session, request)+"/approve", nil, asKey(w.key)).is(200)
		}, "approved"},
		"denial": {func(w tenant, session, request string) {
			denied := w.post(requestPath(session, request)+"/deny", fields{"comment": "enough"}, asKey(w.key)).is(200)
			denied.has(fields{"status": "denied", "comment": "enough", "decided_at": aboutNow}).lacks("granted_actions")
		}, "denied"},
		"end": {func(w tenant, session, _ string) { w.post("/sessions/"+session+"/end", nil, asKey(w.key)).is(200) }, "ended"},
		"expiry": {func(w tenant, session, _ string) {
			w.ask("PATCH", "/sessions/"+session, fields{"expires_in_seconds": 1}, asKey(w.key)).is(200)
		}, "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, func(t *testing.T, api *client) {
				w := api.newTenant()
				there := w.through(api.another(t))
				access := asAgent(w.exchange().access)
				session := w.newSession(nil)
				request := w.askMore(session, fields{"add_actions": 1}, access).is(201).text("id")
				var answers []<-chan *response
				for _, at := range []tenant{w, there} {
					for _, as := range []option{access, asKey(w.key), access, asKey(w.key)} {
						answers = append(answers, at.getLater(requestPath(session, request)+"?wait=60", as))
					}
				}
				eventuallyWaiting(t, w, there, len(answers))
				if name == "approval" { // an event of the agent that decides nothing wakes no waiter for good
					there.change()
				}
				end.do(there, session, request)
				at := time.Now()
				for _, answer := range answers {
					(<-answer).is(200).has(fields{"status": end.want})
				}
				if took := time.Since(at); took > 10*time.Second {
					t.Errorf("answered %s after the end", took)
				}
				eventuallyWaiting(t, w, there, 0)
			})
		})
	}
}

// eventuallyWaiting returns when so many requests wait at the two instances.
func eventuallyWaiting(t *testing.T, w, there tenant, count int) {
	t.Helper()
	waiters := func(at tenant) int {
		var n int
		_, metrics := scraped(t, at.on.address, "GET", "/metrics")
		_, rest, _ := strings.Cut(metrics, "\nremit_event_waiters ")
		must(fmt.Sscan(rest, &n))(t)
		return n
	}
	eventually(t, fmt.Sprintf("%d wait", count), func() bool { return waiters(w)+waiters(there) == count })
}

func TestWaitingInVainForADecisionIsAnsweredPending(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		session := w.newSession(nil)
		request := w.askMore(session, fields{"add_actions": 1}, access).is(201)
		for query, least := range map[string]time.Duration{"": 0, "?wait=0": 0, "?wait=1": time.Second} {
			began := time.Now()
			w.get(requestPath(session, request.text("id"))+query, access).is(200).exactly(request.object())
			if took := time.Since(began); took < least {
				t.Errorf("%q is answered after %s", query, took)
			}
		}
		w.ask("HEAD", requestPath(session, request.text("id"))+"?wait=60", nil, access).is(200) // the client gives up after 20 s
	})
}

// isList fails the test unless the body is a list of exactly these objects.
func (r *response) isList(t *testing.T, want ...fields) {
	t.Helper()
	got := r.array()
	if !slices.EqualFunc(got, want, func(a, b fields) bool { return differences(a, b) == "" }) {
		t.Errorf("%s: lists %s, want %v", r.what, r.body, want)
	}
}
