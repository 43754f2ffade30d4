package server_test

import "testing"

// wantUnwritten fails the test if do changes the session or its agent's audit trail.
func (w tenant) wantUnwritten(session string, do func()) {
	w.t.Helper()
	before, l := w.session(session), w.trail()
	do()
	w.get("/sessions/"+session, asKey(w.key)).is(200).exactly(before)
	l.gainsNothing("what writes nothing")
}

func TestADryRunAnswersAsTheChargeAndChargesNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 5, "max_value_usd": 2, "scopes": list("read")})
		path := "/sessions/" + id + "/actions"
		for _, charge := range []fields{
			{"count": 2, "value_usd": num("0.5"), "action_type": "llm.call", "scope": "read"},
			{"count": 3, "value_usd": num("1.500001")},
			{"count": 4},
			{"scope": "payments:write"},
		} {
			for _, as := range []option{asKey(w.key), access} {
				var dry *response
				w.wantUnwritten(id, func() { dry = w.post(path, charge.with(fields{"dry_run": true}), as) })
				if done := w.post(path, charge.with(fields{"dry_run": false}), as); dry.status != done.status ||
					dry.withoutRequestID() != done.withoutRequestID() {
					t.Errorf("%v: the dry run answers %s, the charge %s", charge, dry.body, done.body)
				}
			}
		}
	})
}

func TestADryRunBeginsNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 5, "max_value_usd": 2})
		for _, begin := range []fields{
			{"action_type": "refund", "session_id": id, "value_usd": 2, "pre_state": fields{"balance": 10}, "metadata": fields{"k": "v"}},
			{"action_type": "refund", "reversible": false, "expires_in_seconds": 60},
		} {
			var dry *response
			w.wantUnwritten(id, func() {
				dry = w.post("/v1/transactions", begin.with(fields{"dry_run": true}), access).is(200)
			})
			wantEqual(t, "the Location of a dry run", dry.header.Get("Location"), "")
			begun := w.post("/v1/transactions", begin, access).is(201)
			dry.exactly(begun.object().without("id").with(fields{"dry_run": true, "created_at": aboutNow, "expires_at": sometime}))
			w.post("/v1/transactions/"+begun.text("id")+"/rollback", nil, access).is(200)
		}
		w.wantUnwritten(id, func() {
			w.post("/v1/transactions", fields{"action_type": "refund", "session_id": id, "value_usd": 3, "dry_run": true}, access).
				refused(403, "session_limit_reached")
		})
	})
}

var sometime = matchText("a timestamp", `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

func TestADryRunAuthorizesAndChargesNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, id := asAgent(w.exchange().access), w.newSession(fields{"max_actions": 5, "max_value_usd": 2})
		of := authorizePath + "?session_id=" + id
		for charges, method := range []string{"GET", "POST"} {
			w.wantUnwritten(id, func() {
				w.ask(method, of+"&value_usd=0.5&dry_run=true", nil, access).identifies(w, agentScopes...).remains([]string{"4", "3"}[charges], "1.5")
				w.ask(method, of+"&value_usd=2.5&dry_run=true", nil, access).stopped(403, "session_limit_reached")
				for _, bad := range []string{"&dry_run=", "&dry_run=1", "&dry_run=True", "&dry_run=true&dry_run=true", "&dry_run=true&idempotency_key=k"} {
					w.ask(method, of+bad, nil, access).stopped(403, "invalid_request")
				}
			})
			w.ask(method, of+"&dry_run=false", nil, access).identifies(w, agentScopes...)
		}
		w.charged(id, 2, 0)
	})
}

// What a proxy passes on of its client's request must not let that pass unpaid.
func TestOnlyTheProxyAsksForADryRun(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		for _, name := range []string{"Dry-Run", "X-Dry-Run", "Dry_Run"} {
			w.get(authorizePath+"?session_id="+id, access, header(name, "true")).is(200)
		}
		w.get(authorizePath+"/reports?dry_run=true", access, header("X-Session-Id", id)).is(200)
		w.charged(id, 4, 0)
	})
}

func TestADryRunTakesNoIdempotencyKey(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		w.wantUnwritten(id, func() {
			w.post("/sessions/"+id+"/actions", fields{"dry_run": true}, access, keyed("k")).invalid("dry_run")
			w.post("/v1/transactions", fields{"action_type": "a", "dry_run": true}, access, keyed("k")).invalid("dry_run")
			r := w.post("/v1/actions", batchOf(fields{"session_id": id, "dry_run": true}), access)
			wantItem(t, r, r.items(1)[0], 400, "invalid_request", "dry_run")
		})
		w.post("/sessions/"+id+"/actions", fields{}, access, keyed("k")).is(200).fresh()
	})
}

func TestADryRunIsNoChargeInTheMetrics(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access, id := asAgent(w.exchange().access), w.newSession(fields{"max_actions": 1, "max_value_usd": 1})
		w.post("/sessions/"+id+"/actions", fields{"dry_run": true}, access).is(200)
		w.post("/sessions/"+id+"/actions", fields{"dry_run": true, "value_usd": 2}, access).is(403)
		w.post("/sessions/"+id+"/actions", fields{"dry_run": true, "scope": "nobody"}, access).is(403)
		w.post("/v1/transactions", fields{"action_type": "a", "session_id": id, "dry_run": true}, access).is(200)
		w.wantMetrics(
			`remit_charges_total{outcome="allowed"} 0`, `remit_charges_total{outcome="max_value_usd"} 0`,
			`remit_charges_total{outcome="scope"} 0`, `remit_actions_charged_total 0`, `remit_transactions_total{event="begun"} 0`,
		)
	})
}
