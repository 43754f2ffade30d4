package server_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// suspend suspends the tenant's organization as the operator does, and the instance reads so.
func (w tenant) suspend() {
	w.t.Helper()
	must(w.on.kept.Suspend(w.t.Context(), uuid.MustParse(w.org)))(w.t)
	w.readSuspensions()
}

func (w tenant) readSuspensions() {
	w.t.Helper()
	must(0, w.on.kept.ReadSuspensions(w.t.Context()))(w.t)
}

// What its agents' tokens are answered, TestWhatEndsAFamilyEndsItOnTheOtherInstanceAtOnce shows.
func TestEveryEndpointRefusesTheKeyOfASuspendedOrganization(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		other := w.newTenant()
		session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
		before := w.session(session)
		rotated := w.post("/v1/organizations/"+w.org+"/api-key/rotate", fields{"grace_seconds": 0}, asKey(w.key)).is(200)
		renewed := rotated.exactly(fields{"api_key": anAPIKey, "previous_expires_at": aboutNow}).text("api_key")
		w.get("/v1/agents", asKey(w.key)).refused(401, "invalid_api_key")
		w.suspend()
		forged := newKeyOf(uuid.MustParse(w.org))
		byKey := append(endpointsOfOrganizations(w, session), endpointsOfBoth(w, session, transaction)...)
		for _, e := range append(byKey, rollbackOf(transaction)) {
			w.ask(e.method, e.path, e.body, asKey(renewed)).refused(403, "organization_suspended")
			w.ask(e.method, e.path, e.body, asKey(forged)).refused(401, "invalid_api_key") // a stranger does not learn it
		}
		w.post("/v1/organizations/"+w.org+"/api-key/rotate", nil, asKey(renewed), keyed("once")).refused(403, "organization_suspended").fresh()
		w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).refused(403, "organization_suspended")
		for _, path := range []string{"/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"} {
			w.postForm(path, byPost(w.agent, "grant_type", "refresh_token", "refresh_token", tokens.refresh, "token", tokens.refresh)).
				refusedOAuth(400, "unauthorized_client", own("organization_suspended"))
		}
		other.get("/v1/auth/verify", asAgent(other.exchange().access)).is(200)

		must(0, w.on.kept.Resume(t.Context(), uuid.MustParse(w.org)))(t)
		w.readSuspensions()
		w.get("/v1/auth/verify", asAgent(tokens.access)).is(200)
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
		w.key = renewed
		wantFields(t, "while it was suspended its session changed", w.session(session), before)
	})
}

// uses are what a suspension with this code forbids: of the session, or of the tenant's agent with an access token or a secret of it.
func (w tenant) uses(code, session string, tokens pair) []func() *response {
	as, path := asAgent(tokens.access), "/v1/sessions/"+session+"/actions"
	ofBoth := []func() *response{
		func() *response { return w.post(path, fields{}, as) },
		func() *response { return w.post(path, fields{}, asKey(w.key)) },
		func() *response { return w.post(path, fields{}, as, keyed("one")) },
		func() *response { return w.get("/v1/auth/authorize?session_id="+session, as) },
		func() *response { return w.beginAs(as, fields{"session_id": session, "value_usd": 0.01}) },
		func() *response { return w.lease(session, fields{"max_actions": 1, "expires_in_seconds": 60}, as) },
	}
	if code == "session_suspended" {
		return append(ofBoth, func() *response {
			return w.post("/v1/sessions", fields{"parent_session_id": session, "agent_id": w.agent.id, "max_actions": 1, "max_value_usd": 0.1}, asKey(w.key))
		})
	}
	return append(ofBoth,
		func() *response {
			return w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret})
		},
		func() *response { return w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}) },
		func() *response { return w.get("/v1/auth/verify", as) },
		func() *response { return w.post("/v1/actions", batchOf(fields{"session_id": session}), as) },
		func() *response {
			return w.post("/v1/actions", batchOf(fields{"session_id": session}), as, keyed("two"))
		},
		func() *response { return w.beginAs(as, nil) },
	)
}

// What one instance has acknowledged the other obeys on its very next request, whatever that is. Both have served the agent before.
func TestTheOtherInstanceObeysASuspensionOnItsVeryNextRequest(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		path func(w tenant, parent, session string) string
		body fields
		code string
	}{
		"agent":         {func(w tenant, _, _ string) string { return "/v1/agents/" + w.agent.id }, fields{}, "agent_suspended"},
		"all agents":    {func(tenant, string, string) string { return "/v1/agents" }, fields{"all": true}, "agent_suspended"},
		"session":       {func(_ tenant, _, session string) string { return "/v1/sessions/" + session }, fields{}, "session_suspended"},
		"session above": {func(_ tenant, parent, _ string) string { return "/v1/sessions/" + parent }, fields{}, "session_suspended"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, func(t *testing.T, api *client) {
				w := api.newTenant()
				here, there := w, w.through(api.another(t))
				parent, tokens := w.newSession(fields{"max_value_usd": 5, "max_lease_seconds": 60}), w.exchange()
				session := w.post("/v1/sessions", fields{"agent_id": w.agent.id, "parent_session_id": parent, "max_actions": 60, "max_value_usd": 2,
					"max_lease_seconds": 60}, asKey(w.key)).is(201).text("id")
				path := test.path(w, parent, session)
				for i := range w.uses(test.code, session, tokens) {
					here.post(path+"/suspend", test.body, asKey(w.key)).is(200)
					there.uses(test.code, session, tokens)[i]().refused(403, test.code)
					there.post(path+"/resume", test.body, asKey(w.key)).is(200)
					if got := here.uses(test.code, session, tokens)[i](); got.status/100 != 2 {
						t.Errorf("%s: %d %s", got.what, got.status, got.body)
					}
					here, there = there, here
				}
			})
		})
	}
}

// What else is refused, TestTheOtherInstanceObeysASuspensionOnItsVeryNextRequest shows.
func TestASuspensionIsShownAndWhatWasBegunMaySettle(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there, key := w.through(w.another(t)), asKey(w.key)
		session, other := w.newSession(fields{"max_lease_seconds": 600, "max_value_usd": 1}), w.newSession(nil)
		tokens := w.exchange()
		as, renewal := asAgent(tokens.access), fields{"max_actions": 1, "expires_in_seconds": 60}
		for kind, path := range map[string]string{"agent": "/v1/agents/" + w.agent.id, "session": "/v1/sessions/" + session} {
			code, of, reason := kind+"_suspended", fields{}, "it loops\n\"twice\"\\n"+strings.Repeat("é", 480)
			if kind == "session" {
				of["session_id"] = session
			}
			commit, rollback := w.begin(fields{"session_id": session, "value_usd": 0.1}), w.begin(fields{"session_id": session})
			lease := w.lease(session, renewal, as).is(201).text("id")
			before, used := w.get(path, key).is(200).object(), w.session(session)
			l := w.trail()
			suspended := w.post(path+"/suspend", fields{"reason": reason}, key).is(200)
			suspended.exactly(before.with(fields{"suspended_at": aboutNow, "suspension_reason": reason}))
			l.gains(suspended, "api_key", of.with(fields{"type": kind + ".suspended", "data": fields{"reason": reason}}))
			wantSameAnswer(t, suspended, there.post(path+"/suspend", fields{"reason": "again"}, key))
			wantSameAnswer(t, suspended, there.get(path, key))
			l.gainsNothing("the second suspension")

			since := fields{"suspended_at": suspended.text("suspended_at")}
			there.post("/sessions/"+session+"/actions", fields{}, as).refused(403, code).has(since)
			there.get("/sessions/"+session, as).is(200)
			if kind == "agent" {
				for _, text := range []string{tokens.access, tokens.refresh} {
					there.post("/v1/auth/introspect", fields{"token": text}, key).is(200).inactive()
				}
				there.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": "rms_" + strings.Repeat("x", 43)}).is(401)
			} else {
				there.patch("/v1/transactions/"+commit, fields{"value_usd": 0.2}, as).refused(403, code).has(since)
				items := there.post("/v1/actions", batchOf(fields{"session_id": session}, fields{"session_id": other}), as).is(200).items(2)
				if items[0].status != 403 || items[1].status != 200 {
					t.Errorf("a batch: %+v", items)
				}
			}
			wantFields(t, "refused uses changed the session", w.session(session).without("suspended_at", "suspension_reason"), used)
			there.post("/v1/transactions/"+commit+"/commit", nil, as).is(200)
			there.post("/v1/transactions/"+rollback+"/rollback", nil, key).is(200)
			settled := there.post("/v1/leases/"+lease+"/settle", fields{"action_count": 1, "value_used_usd": 0, "renew": renewal}, as).is(200)
			if refusal, _ := settled.object()["refusal"].(map[string]any); refusal["code"] != code {
				t.Errorf("the renewal: %v", settled.object())
			}
			there.post("/sessions/"+session+"/actions", fields{}, as).refused(403, code) // although it holds nothing any more

			l.unread()
			resumed := there.post(path+"/resume", fields{"reason": "fixed"}, key).is(200)
			l.gains(resumed, "api_key", of.with(fields{"type": kind + ".resumed", "data": fields{"reason": "fixed"}}))
			wantSameAnswer(t, resumed, w.post(path+"/resume", nil, key))
			l.gainsNothing("the second resumption")
			resumed.lacks("suspended_at")
			w.post("/sessions/"+session+"/actions", fields{}, as).is(200)
		}
	})
}

func TestAllAgentsAreSuspendedAndResumed(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		other := w.newTenant()
		revoked := w.newAgent()
		w.post("/v1/agents/"+revoked.id+"/revoke", nil, asKey(w.key)).is(200)
		second := w.newAgent()
		for _, what := range []string{"/v1/agents/suspend", "/v1/agents/resume"} {
			w.post(what, fields{"all": false}, asKey(w.key)).invalid("all")
		}
		for range 2 { // it may be repeated
			w.post("/v1/agents/suspend", fields{"all": true, "reason": "drill"}, asKey(w.key)).is(200).exactly(fields{"suspended": num(2)})
		}
		for _, a := range []agent{w.agent, second} {
			w.post("/v1/auth/token", fields{"agent_id": a.id, "secret": a.secret}).refused(403, "agent_suspended")
			wantEqual(t, "the reason", w.get("/v1/agents/"+a.id, asKey(w.key)).is(200).text("suspension_reason"), "drill")
		}
		later := w.newAgent()
		w.exchangeFor(later)
		other.exchange()
		w.post("/v1/agents/resume", fields{"all": true}, asKey(w.key)).is(200).exactly(fields{"resumed": num(3)})
		w.exchange()
		w.exchangeFor(second)
	})
}
