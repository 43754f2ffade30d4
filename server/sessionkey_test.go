package server_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sessionKey creates a key of a session.
func (w tenant) sessionKey(session string) string {
	w.t.Helper()
	return w.post("/v1/sessions/"+session+"/keys", nil, asKey(w.key)).is(201).text("key")
}

// onlyWithTokens are the operations of access tokens that no session key opens.
var onlyWithTokens = []string{"GET /v1/sessions", "POST /v1/sessions", "GET /v1/sessions/{id}/tree", "POST /v1/sessions/{id}/end", "GET /v1/transactions",
	"GET /v1/auth/verify", "GET /v1/auth/verify/{path}", "POST /v1/auth/verify/{path}", "GET /v1/agents/{id}/events", "POST /v1/auth/revoke"}

func TestASessionKeyReachesItsSessionAndNothingElseAtEveryOperation(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		keys := "/v1/sessions/" + d.child + "/keys"
		made := d.post(keys, fields{"name": "editor"}, asKey(d.key)).is(201)
		made.exactly(fields{"id": anID, "session_id": d.child, "name": "editor", "key": matchText("a session key", `^rmsk_[0-9A-Za-z_-]{134}$`), "created_at": aboutNow})
		if listed := d.get(keys, asKey(d.key)).is(200).array(); len(listed) != 1 || differences(listed[0], fields{"id": made.text("id"), "session_id": d.child, "name": "editor", "created_at": made.text("created_at")}) != "" {
			t.Errorf("listed: %v", listed)
		}
		as := asAgent(made.text("key"))
		operations := d.reached()
		for _, o := range operations {
			switch {
			case slices.Contains(onlyWithTokens, o.operation):
				d.ask(o.method(), cmp.Or(o.own, o.foreign), o.ownBody, as).refused(403, "session_key_only")
			case o.foreign != "":
				d.ask(o.method(), o.foreign, o.body, as).is(o.status)
			}
		}
		for _, o := range operations {
			if o.own == "" || slices.Contains(onlyWithTokens, o.operation) {
				continue
			}
			if r := d.ask(o.method(), o.own, o.ownBody, as); r.status >= 300 {
				t.Errorf("%s: %d %s", o.operation, r.status, r.body)
			}
		}
		results := d.post("/v1/actions", batchOf(fields{"session_id": d.child}, fields{"session_id": d.other}), as).is(200).array()
		if results[0]["status"] != num("200") || results[1]["status"] != num("404") {
			t.Errorf("a batch: %v", results)
		}
		spent := d.beginAs(as, fields{"on_expiry": "commit", "value_usd": 1}).is(201) // a transaction of it without a session_id
		wantEqual(t, "the session", spent.text("session_id"), d.child)
		d.post("/v1/auth/introspect", fields{"token": made.text("key")}, asKey(d.key)).is(200).exactly(fields{"active": false})
		d.exchangeToken(made.text("key"), d.child).refusedExchange("not valid")
		d.get("/v1/sessions/"+d.child, header("Authorization", "DPoP "+made.text("key"))).refused(401, "invalid_token")

		// Over, the session refuses what is new; what was begun may still be read and settled.
		d.post("/v1/sessions/"+d.child+"/end", nil, asKey(d.key)).is(200)
		d.post("/v1/sessions/"+d.child+"/actions", fields{}, as).refused(403, "session_not_active")
		d.get("/v1/sessions/"+d.child, as).is(200)
		d.post("/v1/transactions/"+spent.text("id")+"/commit", nil, as).is(200)

		d.delete(keys+"/"+made.text("id"), asKey(d.key)).is(204)
		d.delete(keys+"/"+made.text("id"), asKey(d.key)).refused(404, "not_found")
		for _, o := range operations {
			path, body := o.own, o.ownBody
			if path == "" {
				path, body = o.foreign, o.body
			}
			if strings.HasSuffix(path, "authorize/x") { // its request has no session
				continue
			}
			d.ask(o.method(), path, body, as).refused(401, "invalid_token")
		}
	})
}

// The key names no scopes. Those of the session count, as long as the agent has them.
func TestASessionKeyHasTheSessionsScopesThatTheAgentHas(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		w.agent = w.newAgentWith("read", "pay", "transactions:rollback")
		session := w.leasing(fields{"scopes": list("pay", "transactions:rollback")})
		as, path := asAgent(w.sessionKey(session)), "/v1/sessions/"+session+"/actions"
		authorize := "/v1/auth/authorize?session_id=" + session
		told := func(want string) {
			t.Helper()
			for _, query := range []string{"", "&dry_run=true", "&idempotency_key=" + want[:3] + strconv.Itoa(len(want))} {
				wantEqual(t, "authorize"+query+": X-Scopes", w.get(authorize+query, as).is(200).header.Get("X-Scopes"), want)
			}
		}
		lacks := func(scope string) {
			t.Helper()
			w.post(path, fields{"scope": scope}, as).refused(403, "insufficient_scope")
			w.get(authorize+"&scope="+scope, as).refused(403, "insufficient_scope")
			results := w.post("/v1/actions", batchOf(fields{"session_id": session, "scope": scope}), as).is(200).array()
			if results[0]["status"] != num("403") {
				t.Errorf("a batch: %v", results)
			}
		}
		settled := func() string {
			id := w.beginAs(as, fields{}).is(201).text("id")
			w.post("/v1/transactions/"+id+"/commit", nil, as).is(200)
			return "/v1/transactions/" + id + "/rollback"
		}
		lacks("read")
		told("pay transactions:rollback")
		w.post(path, fields{"scope": "pay"}, as).is(200)
		w.get(authorize+"&scope=pay", as).is(200)
		w.post(settled(), nil, as).is(200)
		w.patch("/v1/agents/"+w.agent.id, fields{"scopes": list("read", "pay")}, asKey(w.key)).is(200)
		told("pay")
		lacks("transactions:rollback")
		w.post(settled(), nil, as).refused(403, "insufficient_scope")
	})
}
