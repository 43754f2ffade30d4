package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/server"
)

// delegation is a planner that has handed a child of its session to a worker, and acts in it with a delegated token.
type delegation struct {
	tenant            // its agent is the planner
	planner           pair
	plan, child       string // sessions
	worker            agent
	workers           pair
	other             string // another session of the worker
	transaction, held string // of the child, of the other session
	lease, otherLease string
	token             string // the delegated one
}

const (
	exchangeGrant   = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessTokenType = "urn:ietf:params:oauth:token-type:access_token"
)

func (c *client) newDelegation() delegation {
	c.t.Helper()
	d := delegation{tenant: c.newTenant()}
	scopes := []string{"pay", "read", "sessions:delegate", "transactions:rollback"}
	d.agent, d.worker = d.newAgentWith(scopes...), d.newAgentWith(scopes...)
	d.planner, d.workers = d.exchange(), d.exchangeFor(d.worker)
	room := fields{"max_actions": 100, "max_value_usd": 100, "max_lease_seconds": 60}
	d.plan, d.other = d.newSession(room), d.newSessionOf(d.worker, room)
	d.child = d.childOf(d.planner.access, d.plan, d.worker.id)
	as := asAgent(d.workers.access)
	d.transaction, d.held = d.beginAs(as, fields{"session_id": d.child}).is(201).text("id"), d.beginAs(as, fields{"session_id": d.other}).is(201).text("id")
	lease := fields{"max_actions": 1, "expires_in_seconds": 60}
	d.lease = d.post("/v1/sessions/"+d.child+"/leases", lease, as).is(201).text("id")
	d.otherLease = d.post("/v1/sessions/"+d.other+"/leases", lease, as).is(201).text("id")
	d.token = d.delegate().is(200).text("access_token")
	return d
}

// childOf creates a child of a session, by its agent.
func (d delegation) childOf(access, session, agent string) string {
	d.t.Helper()
	room := d.session(session)["max_actions"].(json.Number)
	actions := must(room.Int64())(d.t) / 4
	return d.post("/v1/sessions", fields{"agent_id": agent, "parent_session_id": session, "max_actions": actions, "max_value_usd": actions, "max_lease_seconds": 60},
		asAgent(access)).is(201).text("id")
}

// grandchild creates a third agent, and for it a child of the child session.
func (d delegation) grandchild() (third agent, session string) {
	d.t.Helper()
	third = d.newAgentWith("pay", "sessions:delegate")
	return third, d.childOf(d.token, d.child, third.id)
}

// exchangeToken asks for a token for a child session with these parameters more.
func (c *client) exchangeToken(subject, session string, more ...string) *response {
	c.t.Helper()
	return c.postForm("/oauth2/token", form(append([]string{
		"grant_type", exchangeGrant, "subject_token", subject, "subject_token_type", accessTokenType, "session_id", session}, more...)...))
}

func (d delegation) delegate(more ...string) *response {
	d.t.Helper()
	return d.exchangeToken(d.planner.access, d.child, more...)
}

func (d delegation) through(c *client) delegation {
	d.tenant = d.tenant.through(c)
	return d
}

// exchangeCauses are the service's own codes for what the words say.
var exchangeCauses = map[string]fields{"must be a child": own("not_found"), "must hold sessions:delegate": lacking("sessions:delegate")}

// refusedExchange fails the test unless the answer is the error of RFC 8693 §2.2.2.
func (r *response) refusedExchange(words string) {
	r.t.Helper()
	r.refusedOAuth(400, "invalid_request", exchangeCauses[words])
	if said := r.text("error_description"); !strings.Contains(said, words) {
		r.t.Errorf("%s: %q, want %q in it", r.what, said, words)
	}
}

func TestAnAgentActsInAChildSessionWithADelegatedToken(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		r := d.delegate("scope", "pay").is(200)
		r.exactly(fields{"access_token": anAccessToken, "issued_token_type": accessTokenType, "token_type": "Bearer", "expires_in": matcher{"seconds", func(value any) bool { return value != num(0) }}, "scope": "pay"})
		_, claims := verify(t, d.client, r.text("access_token"))
		want := fields{"sub": d.worker.id, "agent_id": d.worker.id, "org_id": d.org, "client_id": d.agent.id, "session_id": d.child, "scopes": list("pay"),
			"act": map[string]any{"sub": d.agent.id}, "act_fam": list(d.planner.family())}
		wantFields(t, "claims", claims, claims.with(want))
		delegated, second := r.text("access_token"), d.through(d.another(t))
		for _, at := range []delegation{d, second} {
			at.post("/v1/sessions/"+d.child+"/actions", fields{"value_usd": 1, "scope": "pay"}, asAgent(delegated)).is(200)
			at.post("/v1/sessions/"+d.child+"/actions", fields{"scope": "read"}, asAgent(delegated)).refused(403, "insufficient_scope")
		}
		for _, path := range []string{"/v1/auth/verify?scope=pay", "/v1/auth/authorize?session_id=" + d.child} {
			r := d.get(path, asAgent(d.token)).is(200)
			if r.header.Get("X-Agent-Id") != d.worker.id || r.header.Get("X-Actor-Id") != d.agent.id {
				t.Errorf("%s: agent %s, actor %s", path, r.header.Get("X-Agent-Id"), r.header.Get("X-Actor-Id"))
			}
		}
		if acting, given := d.get("/v1/auth/verify", asAgent(d.planner.access)).is(200).header["X-Actor-Id"]; given {
			t.Errorf("X-Actor-Id %s for a token that is not delegated", acting)
		}
		d.post("/v1/auth/introspect", fields{"token": d.token}, asKey(d.key)).is(200).has(fields{
			"active": true, "sub": d.worker.id, "agent_id": d.worker.id, "client_id": d.agent.id, "session_id": d.child, "act": fields{"sub": d.agent.id},
		})
		trail := d.get("/v1/agents/"+d.worker.id+"/events", asKey(d.key)).is(200).array()
		last := slices.IndexFunc(trail, func(e fields) bool { return e["type"] == "token.issued" && e["session_id"] == d.child })
		if last < 0 || trail[last]["actor"].(map[string]any)["id"] != d.agent.id {
			t.Errorf("the audit trail does not name the token's receiver: %v", trail)
		}
	})
}

func TestADelegatedTokenOutlivesNeitherItsSubjectNorItsSession(t *testing.T) {
	t.Parallel()
	d := onOneRedis(t).newDelegation()
	short := d.post("/v1/sessions", fields{"agent_id": d.worker.id, "parent_session_id": d.plan, "max_actions": 1, "max_value_usd": 1, "expires_in_seconds": 600},
		asAgent(d.planner.access)).is(201).text("id")
	expiry := func(text string) time.Time {
		_, claims := verify(t, d.client, text)
		seconds, _ := claims["exp"].(json.Number).Int64()
		return time.Unix(seconds, 0)
	}
	r := d.exchangeToken(d.planner.access, short).is(200)
	session := must(time.Parse(time.RFC3339, d.session(short)["expires_at"].(string)))(t)
	if got := expiry(r.text("access_token")); got.After(session) || got.Before(session.Add(-5*time.Second)) {
		t.Errorf("it expires at %s, its session at %s", got, session)
	}
	if got, subject := expiry(d.token), expiry(d.planner.access); got.After(subject) {
		t.Errorf("it expires at %s, the subject token at %s", got, subject)
	}
}

// Whose a child is, redisstore shows.
func TestTheExchangeRefusesWhatIsNotItsToGive(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		stranger := d.newDelegation()
		plain := d.newAgentWith("pay")
		without := d.exchangeFor(plain).access
		for _, test := range []struct {
			name             string
			subject, session string
			more             []string
			words            string
		}{
			{"no subject token", "", d.child, nil, "subject_token is required"},
			{"a subject token that is none", "e30", d.child, nil, "subject token is not valid"},
			{"a refresh token", d.planner.refresh, d.child, nil, "subject token is not valid"},
			{"no session", d.planner.access, "", nil, "session_id is required"},
			{"a session that is no id", d.planner.access, "mine", nil, "session_id must be a UUID"},
			{"another organization's child", d.planner.access, stranger.child, nil, "must be a child"},
			{"its own session", d.planner.access, d.plan, nil, "must be a child"},
			{"by the child's agent", d.workers.access, d.child, nil, "must be a child"},
			{"by an agent that may not delegate", without, d.child, nil, "must hold sessions:delegate"},
			{"another type of subject token", d.planner.access, d.child, []string{"requested_token_type", "urn:ietf:params:oauth:token-type:refresh_token"}, "requested_token_type"},
			{"an actor token", d.planner.access, d.child, []string{"actor_token", d.planner.access, "actor_token_type", accessTokenType}, "actor_token"},
			{"a parameter twice", d.planner.access, d.child, []string{"session_id", d.child}, "twice"},
		} {
			test.more = append(test.more, "test", test.name)
			r := d.exchangeToken(test.subject, test.session, test.more...)
			r.what = test.name
			r.refusedExchange(test.words)
		}
		d.postForm("/oauth2/token", form("grant_type", exchangeGrant, "subject_token", d.planner.access, "session_id", d.child)).
			refusedExchange("subject_token_type must be")
		d.delegate("scope", "write").refusedOAuth(400, "invalid_scope", lacking("write"))
		d.delegate("scope", "pay pay").refusedOAuth(400, "invalid_scope")
	})
}

// A token that was narrowed to fewer scopes gives no more, and without sessions:delegate nothing at all.
func TestANarrowTokenDelegatesNoMoreThanItHolds(t *testing.T) {
	t.Parallel()
	d := onOneRedis(t).newDelegation()
	narrow := d.grant("pay", "sessions:delegate").is(200).text("access_token")
	d.exchangeToken(narrow, d.child).is(200).has(fields{"scope": "pay sessions:delegate"})
	d.exchangeToken(narrow, d.child, "scope", "read").refusedOAuth(400, "invalid_scope", lacking("read"))
	d.exchangeToken(d.grant("pay").is(200).text("access_token"), d.child).refusedExchange("must hold sessions:delegate")
}

// The subject token authenticates the request. Credentials that are there all the same must be right, and the same agent's.
func TestTheClientOfAnExchangeIsTheSubjectTokensOwn(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		asked := func(more ...string) raw {
			return form(append([]string{"grant_type", exchangeGrant, "subject_token", d.planner.access, "subject_token_type", accessTokenType, "session_id", d.child}, more...)...)
		}
		d.postForm("/oauth2/token", asked(), byBasic(d.agent)).is(200)
		d.postForm("/oauth2/token", asked("client_id", d.agent.id, "client_secret", d.agent.secret)).is(200)
		d.postForm("/oauth2/token", asked("client_id", d.agent.id)).is(200)
		for _, refused := range []*response{
			d.postForm("/oauth2/token", asked(), byBasic(d.worker)), d.postForm("/oauth2/token", asked(), asAgent(d.planner.access)),
			d.postForm("/oauth2/token", asked("client_id", d.worker.id, "client_secret", d.worker.secret)),
			d.postForm("/oauth2/token", asked("client_id", d.worker.id)), d.postForm("/oauth2/token", asked("client_id", "me")),
			d.postForm("/oauth2/token", asked("client_id", d.agent.id, "client_secret", d.worker.secret)),
			d.postForm("/oauth2/token", asked("client_assertion_type", assertionType, "client_assertion", "e30.e30.e30")),
			d.postForm("/oauth2/token", asked("client_assertion_type", assertionType, "client_assertion", d.newSigner("ES256").sign(nil))),
		} {
			refused.refusedOAuth(401, "invalid_client")
		}
	})
}

// reached are the operations that take an access token, each asked by the delegated token for what is and for what is not its own.
func (d delegation) reached() []reachedOperation {
	own, other := "/v1/sessions/"+d.child, "/v1/sessions/"+d.other
	transaction, held := "/v1/transactions/"+d.transaction, "/v1/transactions/"+d.held
	lease := fields{"max_actions": 1, "expires_in_seconds": 1}
	more := fields{"add_actions": 1, "reason": "more"}
	settled := fields{"action_count": 0, "value_used_usd": 0}
	ask := d.post(own+"/requests", more, asAgent(d.workers.access)).is(201).text("id")
	asked := d.post(other+"/requests", more, asAgent(d.workers.access)).is(201).text("id")
	newChild := func(of string) fields {
		return fields{"agent_id": d.worker.id, "parent_session_id": of, "max_actions": 1, "max_value_usd": 0}
	}
	begin := func(in string) fields {
		return fields{"action_type": "pay", "pre_state": fields{}, "session_id": in}
	}
	return []reachedOperation{
		{"GET /v1/sessions", "/v1/sessions?status=active", nil, "", nil, 0},
		{"POST /v1/sessions", "/v1/sessions", newChild(d.child), "/v1/sessions", newChild(d.other), 404},
		{"GET /v1/sessions/{id}", own, nil, other, nil, 404},
		{"GET /v1/sessions/{id}/tree", own + "/tree", nil, other + "/tree", nil, 404},
		{"GET /v1/sessions/{id}/usage", own + "/usage", nil, other + "/usage", nil, 404},
		{"POST /v1/sessions/{id}/actions", own + "/actions", fields{}, other + "/actions", fields{}, 404},
		{"POST /v1/actions", "/v1/actions", batchOf(fields{"session_id": d.child}), "", nil, 0},
		{"POST /v1/sessions/{id}/leases", own + "/leases", lease, other + "/leases", lease, 404},
		{"GET /v1/leases/{id}", "/v1/leases/" + d.lease, nil, "/v1/leases/" + d.otherLease, nil, 404},
		{"POST /v1/leases/{id}/settle", "/v1/leases/" + d.lease + "/settle", settled, "/v1/leases/" + d.otherLease + "/settle", settled, 404},
		{"GET /v1/sessions/{id}/requests", own + "/requests", nil, other + "/requests", nil, 404},
		{"POST /v1/sessions/{id}/requests", own + "/requests", more, other + "/requests", more, 404},
		{"GET /v1/sessions/{id}/requests/{request_id}", "/sessions/" + d.child + "/requests/" + ask, nil, other + "/requests/" + asked, nil, 404},
		{"GET /v1/transactions", "/v1/transactions?session_id=" + d.child, nil, "/v1/transactions?session_id=" + d.other, nil, 404},
		{"POST /v1/transactions", "/v1/transactions", begin(d.child), "/v1/transactions", begin(d.other), 404},
		{"GET /v1/transactions/{id}", transaction, nil, held, nil, 404},
		{"PATCH /v1/transactions/{id}", transaction, fields{"value_usd": 1}, held, fields{"value_usd": 1}, 404},
		{"POST /v1/transactions/{id}/commit", transaction + "/commit", nil, held + "/commit", nil, 404},
		{"POST /v1/transactions/{id}/rollback", transaction + "/rollback", nil, held + "/rollback", nil, 404},
		{"GET /v1/auth/verify", "/v1/auth/verify?scope=pay", nil, "", nil, 0},
		{"GET /v1/auth/verify/{path}", "/v1/auth/verify/any/path", nil, "", nil, 0},
		{"POST /v1/auth/verify/{path}", "/v1/auth/verify/any/path", nil, "", nil, 0},
		{"GET /v1/auth/authorize", "/v1/auth/authorize?session_id=" + d.child, nil, "/v1/auth/authorize?session_id=" + d.other, nil, 403},
		{"POST /v1/auth/authorize", "/v1/auth/authorize?session_id=" + d.child, nil, "/v1/auth/authorize?session_id=" + d.other, nil, 403},
		{"GET /v1/auth/authorize/{path}", "", nil, "/v1/auth/authorize/x", nil, 403},
		{"POST /v1/auth/authorize/{path}", "", nil, "/v1/auth/authorize/x", nil, 403},
		{"GET /v1/agents/{id}/events", "", nil, "/v1/agents/" + d.worker.id + "/events", nil, 403},
		{"POST /v1/auth/revoke", "", nil, "/v1/auth/revoke", fields{"refresh_token": d.workers.refresh}, 403},
		{"POST /v1/sessions/{id}/end", own + "/end", nil, other + "/end", nil, 404},
	}
}

// reachedOperation is an operation with a request that the delegated token may make, "" for none, and one that it may not.
type reachedOperation struct {
	operation string
	own       string
	ownBody   any
	foreign   string
	body      any
	status    int
}

func (o reachedOperation) method() string {
	method, _, _ := strings.Cut(o.operation, " ")
	return method
}

// bearerOperations are the operations of openapi.json that take an access token.
func bearerOperations() (names []string) {
	for _, o := range server.Operations() {
		if o.ByToken {
			names = append(names, o.Method+" "+o.Paths[0])
		}
	}
	return names
}

func TestADelegatedTokenReachesItsSessionAndNothingElseAtEveryOperation(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		operations := d.reached()
		var named []string
		for _, o := range operations {
			named = append(named, o.operation)
		}
		sameNames(t, bearerOperations(), named)
		for _, o := range operations { // nothing else is touched: the foreign requests come first
			if o.foreign == "" {
				continue
			}
			r := d.ask(o.method(), o.foreign, o.body, asAgent(d.token)).is(o.status)
			if o.status == 403 && o.own == "" && !strings.Contains(o.operation, "authorize") {
				r.refused(403, "delegated_token")
			}
		}
		for _, o := range operations {
			if o.own == "" {
				continue
			}
			if r := d.ask(o.method(), o.own, o.ownBody, asAgent(d.token)); r.status >= 300 {
				t.Errorf("%s: %d %s", o.operation, r.status, r.body)
			}
		}
	})
}

func TestListsShowADelegatedTokenItsSessionAlone(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		as := asAgent(d.token)
		for path, want := range map[string][]string{
			"/v1/sessions":                               {d.child},
			"/sessions":                                  {d.child},
			"/v1/sessions?agent_id=" + d.worker.id:       {d.child},
			"/v1/sessions?status=completed":              nil,
			"/v1/transactions":                           {d.transaction},
			"/v1/transactions?agent_id=" + d.worker.id:   {d.transaction},
			"/v1/transactions?session_id=" + d.child:     {d.transaction},
			"/v1/transactions?status=committed&limit=10": nil,
		} {
			if found := d.get(path, as).is(200).ids(); !slices.Equal(found, want) {
				t.Errorf("%s: %v, want %v", path, found, want)
			}
		}
		d.get("/v1/sessions?agent_id="+d.agent.id, as).refused(404, "not_found")
		d.get("/v1/transactions?agent_id="+d.agent.id, as).refused(404, "not_found")
		results := d.post("/v1/actions", batchOf(fields{"session_id": d.child}, fields{"session_id": d.other}), as).is(200).array()
		if results[0]["status"] != json.Number("200") || results[1]["status"] != json.Number("404") {
			t.Errorf("a batch: %v", results)
		}
		if d.session(d.other)["action_count"] != json.Number("2") { // of the transaction and the lease
			t.Errorf("the other session was charged: %v", d.session(d.other))
		}
		d.beginAs(as, fields{}).refused(403, "delegated_token")
		d.post("/v1/sessions", fields{"agent_id": d.worker.id}, as).refused(401, "missing_credentials")
	})
}

// A child that a delegated token creates is another session: the next exchange reaches it, the token that created it does not.
func TestADelegatedTokenGoesDownTheTreeByAnotherExchangeAlone(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		third, below := d.grandchild()
		sibling := d.childOf(d.planner.access, d.plan, third.id)
		d.get("/v1/sessions/"+below, asAgent(d.token)).refused(404, "not_found")
		d.exchangeToken(d.planner.access, below).refusedExchange("must be a child")
		d.exchangeToken(d.token, sibling).refusedExchange("must be a child")
		r := d.exchangeToken(d.token, below).is(200)
		_, claims := verify(t, d.client, r.text("access_token"))
		act := map[string]any{"sub": d.worker.id, "act": map[string]any{"sub": d.agent.id}}
		want := fields{"sub": third.id, "client_id": d.worker.id, "act": act, "session_id": below}
		wantFields(t, "claims", claims, claims.with(want))
		d.post("/v1/sessions/"+below+"/actions", fields{}, asAgent(r.text("access_token"))).is(200)
		d.post("/v1/sessions/"+d.child+"/actions", fields{}, asAgent(r.text("access_token"))).refused(404, "not_found")
		d.revoke()
		d.post("/v1/sessions/"+below+"/actions", fields{}, asAgent(r.text("access_token"))).refused(401, "invalid_token")
	})
}

// ends are what kills a delegated token, or stops it for the time being: one for each answer, and what HTTP alone can do. The rest is in
// redisstore.
var ends = []struct {
	name   string
	do     func(d delegation)
	status int
	code   string
}{
	{"the end of the child", func(d delegation) { d.post("/v1/sessions/"+d.child+"/end", nil, asKey(d.key)).is(200) }, 401, "invalid_token"},
	{"its own end of the child", func(d delegation) { d.post("/v1/sessions/"+d.child+"/end", nil, asAgent(d.token)).is(200) }, 401, "invalid_token"},
	{"a revoked acting agent", func(d delegation) { d.revoke() }, 401, "invalid_token"},
	{"its revocation by the acting agent", func(d delegation) {
		d.postForm("/oauth2/revoke", form("token", d.token), byBasic(d.agent)).is(200)
	}, 401, "invalid_token"},
	{"its revocation by the child's agent", func(d delegation) {
		d.postForm("/oauth2/revoke", form("token", d.token), byBasic(d.worker)).is(200)
	}, 401, "invalid_token"},
	{"a suspended child", func(d delegation) { d.post("/v1/sessions/"+d.child+"/suspend", nil, asKey(d.key)).is(200) }, 403, "session_suspended"},
	{"a suspended child's agent", func(d delegation) { d.post("/v1/agents/"+d.worker.id+"/suspend", nil, asKey(d.key)).is(200) }, 403, "agent_suspended"},
}

// stopped are the causes that the exchange of a token tells, which is not ended.
var stopped = map[string]fields{"agent_suspended": suspendedAgent, "session_suspended": suspendedSession}

func TestADelegatedTokenIsRefusedEverywhereAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range ends {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, func(t *testing.T, api *client) {
				d := api.newDelegation()
				operations, second := d.reached(), d.through(api.another(t))
				for _, at := range []delegation{d, second} {
					at.get("/v1/auth/verify", asAgent(d.token)).is(200)
				}
				test.do(d)
				for _, at := range []delegation{d, second} {
					for _, o := range operations {
						path, body := o.own, o.ownBody
						if path == "" {
							path, body = o.foreign, o.body
						}
						at.ask(o.method(), path, body, asAgent(d.token)).refused(test.status, test.code)
					}
					at.post("/v1/auth/introspect", fields{"token": d.token}, asKey(d.key)).is(200).exactly(fields{"active": false})
					at.exchangeToken(d.token, d.child).refusedOAuth(400, "invalid_request", stopped[test.code])
				}
			})
		})
	}
}

// That its agent and its client do, TestADelegatedTokenIsRefusedEverywhereAtOnce shows.
func TestNoOtherAgentRevokesADelegatedToken(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		for _, other := range []agent{d.newAgentWith("pay"), d.newTenant().agent} {
			d.postForm("/oauth2/revoke", form("token", d.token), byBasic(other)).refusedOAuth(400, "invalid_grant")
		}
		d.get("/v1/auth/verify", asAgent(d.token)).is(200)
		d.post("/v1/agents/"+d.worker.id+"/revoke", nil, asKey(d.key)).is(200)
		for range 2 { // the first answer may be lost
			d.postForm("/oauth2/revoke", form("token", d.token), byBasic(d.agent)).is(200)
		}
	})
}

// A token for Remit and one tool must not become one for another tool: not for another agent, not by a child for the same agent, and not
// along a chain. What the agents themselves may reach, redisstore shows.
func TestAnExchangeGivesNoAudienceBeyondItsSubjectToken(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		own := d.childOf(d.planner.access, d.plan, d.agent.id) // of the same agent
		both := d.grantFor(issuer, mail).is(200).text("access_token")
		trail := d.trail()
		for _, session := range []string{d.child, own} {
			d.exchangeToken(d.planner.access, session, "resource", mail).refusedOAuth(400, "invalid_target")
			for _, beyond := range [][]string{{"resource", wiki}, {"resource", mail, "resource", wiki}, {"resource", mail + "/"}, {"audience", wiki}} {
				d.exchangeToken(both, session, beyond...).refusedOAuth(400, "invalid_target")
			}
		}
		d.delegate("resource", "no URI").refusedOAuth(400, "invalid_target")
		trail.gainsNothing("a refused exchange")

		narrow := d.exchangeToken(both, own).is(200).text("access_token") // for Remit alone
		wide := d.exchangeToken(both, own, "resource", mail, "resource", issuer+"/").is(200).text("access_token")
		below := d.childOf(wide, own, d.agent.id)
		d.exchangeToken(narrow, below, "resource", mail).refusedOAuth(400, "invalid_target")
		d.exchangeToken(wide, below, "resource", wiki).refusedOAuth(400, "invalid_target")
		tool := d.exchangeToken(wide, below, "resource", mail).is(200).text("access_token")
		if _, claims := verify(t, d.client, tool); claims["aud"] != mail {
			t.Errorf("aud is %v", claims["aud"])
		}
		d.get("/v1/auth/verify?audience="+mail, asAgent(tool)).is(200)
		d.get("/v1/sessions/"+below, asAgent(tool)).refused(401, "invalid_token")
		d.exchangeToken(tool, d.childOf(d.exchangeToken(wide, below).is(200).text("access_token"), below, d.agent.id)).refusedOAuth(400, "invalid_request")
		d.patch("/v1/agents/"+d.agent.id, fields{"audiences": list("https://other.example/")}, asKey(d.key)).is(200)
		d.exchangeToken(wide, below, "resource", mail).refusedOAuth(400, "invalid_target")
	})
}

func TestADelegatedTokenLosesTheScopesThatItsActingAgentLoses(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		path := "/v1/sessions/" + d.child + "/actions"
		d.post(path, fields{"scope": "pay"}, asAgent(d.token)).is(200)
		d.patch("/v1/agents/"+d.agent.id, fields{"scopes": list("read", "sessions:delegate")}, asKey(d.key)).is(200)
		d.post(path, fields{"scope": "pay"}, asAgent(d.token)).refused(403, "insufficient_scope")
		d.post(path, fields{"scope": "read"}, asAgent(d.token)).is(200)
		if scopes := d.get("/v1/auth/verify", asAgent(d.token)).is(200).header.Get("X-Scopes"); scopes != "read sessions:delegate" {
			t.Errorf("scopes %q", scopes)
		}
	})
}

// Who waits for a decision with a delegated token must not learn of it once the acting agent is revoked, which is no event of the
// session's agent.
func TestAWaitWithADelegatedTokenEndsWithItsActingAgent(t *testing.T) {
	t.Parallel()
	d := onOneRedis(t).newDelegation()
	asked := d.post("/v1/sessions/"+d.child+"/requests", fields{"add_actions": 1, "reason": "more"}, asAgent(d.token)).is(201).text("id")
	path := "/v1/sessions/" + d.child + "/requests/" + asked
	waited := d.getLater(path+"?wait=30", asAgent(d.token))
	eventuallyWaiting(t, d.tenant, d.tenant.through(d.another(t)), 1)
	d.revoke()
	d.post(path+"/deny", nil, asKey(d.key)).is(200)
	(<-waited).refused(401, "invalid_token")
}
