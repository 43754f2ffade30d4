package server_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"remit/redisstore"
)

func TestEachChangeOfAnAgentAndItsTokensLeavesItsEventOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) { // whose setup has no grace for refresh tokens
		w := api.newTenant()
		created := w.post("/v1/agents", fields{"name": "scout", "scopes": list("read")}, asKey(w.key)).is(201)
		w.agent = agent{created.text("id"), created.text("secret")}
		l := &trail{tenant: w}
		l.gains(created, "api_key", fields{"type": "agent.created"})

		rotated := w.change()
		w.agent.secret = rotated.text("secret")
		l.gains(rotated, "api_key", fields{"type": "agent.secret_rotated",
			"data": map[string]any{"previous_expires_at": rotated.text("previous_expires_at")}})

		issued := w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).is(200)
		first := pairIn(issued)
		family := familyOf(t, api, first.access)
		l.gains(issued, "agent", fields{"type": "token.issued", "family_id": family})
		granted := w.grant("read").is(200)
		other := pairIn(granted)
		otherFamily := familyOf(t, api, other.access)
		l.gains(granted, "agent", fields{"type": "token.issued", "family_id": otherFamily})

		refreshed := w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200)
		l.gains(refreshed, "agent", fields{"type": "token.refreshed", "family_id": family})
		renewed := w.renew(other.refresh).is(200)
		l.gains(renewed, "agent", fields{"type": "token.refreshed", "family_id": otherFamily})

		reused := w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(401)
		l.gains(reused, "agent", fields{"type": "token.reuse_detected", "family_id": family})
		w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(401)
		l.gainsNothing("a reuse of what is revoked")

		rotated = w.post("/v1/agents/"+w.agent.id+"/secret/rotate", fields{"revoke_families": true}, asKey(w.key)).is(200)
		w.agent.secret = rotated.text("secret")
		if got := typesOf(l.unread()); got != "agent.secret_rotated agent.families_revoked" {
			t.Errorf("a rotation that revokes the families leaves %s", got)
		}
		ending := w.exchange()
		l.unread()
		endIt := func() *response {
			return w.delete("/v1/agents/"+w.agent.id+"/families/"+ending.family(), asKey(w.key)).is(200)
		}
		l.gains(endIt(), "api_key", fields{"type": "token.revoked", "family_id": ending.family()})
		endIt()
		l.gainsNothing("the second revocation of a family")

		own := w.exchange()
		l.unread()
		end := func() *response {
			return w.post("/v1/auth/revoke", fields{"refresh_token": own.refresh}, asAgent(own.access)).is(200)
		}
		l.gains(end(), "agent", fields{"type": "token.revoked", "family_id": familyOf(t, api, own.access)})
		end()
		l.gainsNothing("the second revocation of a token")
		granted = w.grant("read").is(200)
		l.unread()
		last := pairIn(granted)
		revoked := w.postForm("/oauth2/revoke", form("token", last.refresh), byBasic(w.agent)).is(200)
		l.gains(revoked, "agent", fields{"type": "token.revoked", "family_id": last.family()})

		gone := w.delete("/v1/agents/"+w.agent.id, asKey(w.key)).is(200)
		l.gains(gone, "api_key", fields{"type": "agent.revoked"})
		w.revoke()
		l.gainsNothing("the second revocation of an agent")
	})
}

func TestEachChangeOfASessionLeavesItsEventOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, l := asAgent(w.exchange().access), w.trail()
		limits := fields{"agent_id": w.agent.id, "max_actions": 10, "max_value_usd": num("2.5")}
		created := w.post("/sessions", limits, asKey(w.key)).is(201)
		id := created.text("id")
		l.gains(created, "api_key", fields{"type": "session.created", "session_id": id, "data": map[string]any{
			"max_actions": num(10), "max_value_usd": num("2.5"), "expires_at": created.text("expires_at")}})

		charge := func(count int, value string, as option) *response {
			return w.post("/v1/sessions/"+id+"/actions", fields{"count": count, "value_usd": num(value)}, as)
		}
		about := func(what, limit string) fields {
			return fields{"type": "session." + what, "session_id": id, "data": map[string]any{"limit": limit}}
		}
		charge(7, "1.999999", asKey(w.key)).is(200)
		l.gainsNothing("a charge")
		l.gains(charge(1, "0", access).is(200), "agent", about("limit_warning", "max_actions"), actionThreshold(id, 80, 8, 10))
		l.gains(charge(1, "0.000001", asKey(w.key)).is(200), "api_key", about("limit_warning", "max_value_usd"),
			valueThreshold(id, 80, "2", "2.5"))
		l.gains(charge(1, "0.6", access).is(403), "agent", about("limit_reached", "max_value_usd"))
		charge(1, "0.5", access).is(200)
		l.gains(w.get("/sessions/"+id, access).is(200), "agent", about("limit_reached", "max_actions").
			with(fields{"request_id": someText}), actionThreshold(id, 100, 10, 10).with(fields{"request_id": someText}),
			valueThreshold(id, 100, "2.5", "2.5").with(fields{"request_id": someText}))
		charge(1, "0", asKey(w.key)).is(403)
		l.gainsNothing("a limit that is reached again")

		more := fields{"max_actions": 12, "max_value_usd": 100, "expires_in_seconds": 60}
		changed := w.ask("PATCH", "/sessions/"+id, more, asKey(w.key)).is(200)
		l.gains(changed, "api_key", fields{"type": "session.limits_changed", "session_id": id, "data": map[string]any{
			"max_actions": num(12), "max_value_usd": num(100), "expires_at": changed.text("expires_at")}},
			about("limit_warning", "max_actions"))
		l.gains(charge(2, "0", access).is(200), "agent", about("limit_reached", "max_actions"), actionThreshold(id, 100, 12, 12))

		ended := w.post("/sessions/"+id+"/end", nil, access).is(200)
		l.gains(ended, "agent", fields{"type": "session.ended", "session_id": id, "data": map[string]any{"value_released_usd": num(0)}})
		w.post("/sessions/"+id+"/end", nil, asKey(w.key)).is(200)
		l.gainsNothing("the second end")
	})
}

func TestEachChangeOfATransactionLeavesItsEventOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		session := w.newSession(fields{"max_actions": 100, "max_value_usd": 5})
		l := w.trail()
		begin := func(settings fields) *response {
			return w.post("/v1/transactions", settings.with(fields{"action_type": "pay", "pre_state": fields{}}), access).is(201)
		}
		step := func(r *response, step string, body any, as option) *response {
			return w.post("/v1/transactions/"+r.text("id")+"/"+step, body, as).is(200)
		}
		of := func(r *response, what string, data map[string]any) fields {
			event := fields{"type": "transaction." + what, "transaction_id": r.text("id")}
			if r.object()["session_id"] != nil {
				event["session_id"] = session
			}
			if data != nil {
				event["data"] = data
			}
			return event
		}
		warned := fields{"type": "session.limit_warning", "session_id": session, "data": map[string]any{"limit": "max_value_usd"}}

		one := begin(fields{"session_id": session, "value_usd": num("0.5")})
		l.gains(one, "agent", of(one, "begun", map[string]any{"value_held_usd": num("0.5")}))
		l.gains(step(one, "commit", fields{"value_usd": num("0.25")}, access), "agent",
			of(one, "committed", map[string]any{"value_usd": num("0.25"), "overage_usd": num(0)}))
		l.gains(step(one, "rollback", nil, asKey(w.key)), "api_key",
			of(one, "rolled_back", map[string]any{"value_released_usd": num("0.25")}))

		two := begin(fields{"session_id": session, "value_usd": 4})
		l.gains(two, "agent", of(two, "begun", map[string]any{"value_held_usd": num(4)}), warned,
			valueThreshold(session, 80, "4", "5"))
		l.gains(step(two, "rollback", nil, asKey(w.key)), "api_key",
			of(two, "rolled_back", map[string]any{"value_released_usd": num(4)}))

		free := begin(fields{"value_usd": 3})
		l.gains(free, "agent", of(free, "begun", nil))
		l.gains(step(free, "commit", nil, access), "agent",
			of(free, "committed", map[string]any{"value_usd": num(3), "overage_usd": num(0)}))

		three := begin(fields{"session_id": session, "value_usd": num("1.5")})
		four := begin(fields{"session_id": session, "value_usd": 1, "expires_in_seconds": 300})
		l.unread()
		ended := w.post("/sessions/"+session+"/end", nil, asKey(w.key)).is(200)
		events := l.unread()
		if len(events) != 3 {
			t.Fatalf("the end leaves %v", events)
		}
		held := map[any]any{three.text("id"): num("1.5"), four.text("id"): num(1)}
		for _, got := range events[:2] {
			want := fields{"type": "transaction.rolled_back", "session_id": session, "transaction_id": got["transaction_id"],
				"data": map[string]any{"value_released_usd": held[got["transaction_id"]]}}
			if found := differences(got, l.common(ended, "api_key").with(want)); found != "" {
				t.Errorf("the end: %s", found)
			}
			delete(held, got["transaction_id"])
		}
		want := fields{"type": "session.ended", "session_id": session, "data": map[string]any{"value_released_usd": num("2.5")}}
		if found := differences(events[2], l.common(ended, "api_key").with(want)); found != "" {
			t.Errorf("the end: %s", found)
		}
	})
}

// The overage is in the event of the transaction that caused it.
func TestTheEventOfACommitBeyondTheLimitHasTheOverageAndTheLimit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, session := asAgent(w.exchange().access), w.newSession(fields{"max_value_usd": 1})
		begun := w.post("/v1/transactions", fields{"action_type": "pay", "pre_state": fields{}, "session_id": session,
			"value_usd": num("0.5")}, access).is(201)
		l := w.trail()
		committed := w.post("/v1/transactions/"+begun.text("id")+"/commit", fields{"value_usd": num("1.75")}, access).is(200)
		events := l.unread()
		seen := map[string]int{}
		for _, got := range events {
			data, _ := json.Marshal(got["data"])
			seen[got["type"].(string)+string(data)]++
			if got["request_id"] != committed.header.Get("X-Request-Id") || got["session_id"] != session {
				t.Errorf("an event of another change: %v", got)
			}
		}
		for _, want := range []string{`transaction.committed{"overage_usd":0.75,"value_usd":1}`,
			`session.limit_warning{"limit":"max_value_usd"}`, `session.limit_reached{"limit":"max_value_usd"}`,
			`budget.threshold{"budget":"session","limit":"max_value_usd","max_value_usd":1,"threshold":80,"value_usd":1}`,
			`budget.threshold{"budget":"session","limit":"max_value_usd","max_value_usd":1,"threshold":100,"value_usd":1}`} {
			if seen[want] != 1 || len(events) != 5 {
				t.Errorf("%s is there %d times among %v", want, seen[want], events)
			}
		}
	})
}

// Expiry has no caller: its event names time, and no request.
func TestExpiryIsRecordedOnceByTheFirstObserver(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		access := asAgent(w.exchange().access)
		lasting := w.newSession(nil)
		begun := w.post("/v1/transactions", fields{"action_type": "pay", "pre_state": fields{}, "session_id": lasting,
			"value_usd": 3, "expires_in_seconds": 1}, access).is(201)
		brief := w.newSession(fields{"expires_in_seconds": 1})
		l := w.trail()

		var saw *response
		eventually(t, "the session has expired", func() bool {
			saw = there.get("/sessions/"+brief, access).is(200)
			return saw.text("status") == "expired"
		})
		l.gains(saw, "time", fields{"type": "session.expired", "session_id": brief})

		saw = w.get("/sessions/"+lasting, asKey(w.key)).is(200)
		l.gains(saw, "time", fields{"type": "transaction.expired", "session_id": lasting,
			"transaction_id": begun.text("id"), "data": map[string]any{"value_released_usd": num(3)}})

		for _, at := range []tenant{w, there} {
			for _, id := range []string{brief, lasting} {
				at.get("/sessions/"+id, asKey(w.key)).is(200)
			}
			at.post("/sessions/"+brief+"/actions", fields{}, access).is(403)
			at.post("/sessions/"+brief+"/end", nil, asKey(w.key)).is(409)
			at.ask("PATCH", "/sessions/"+brief, fields{"max_actions": 5}, asKey(w.key)).is(409)
			at.post("/v1/transactions", fields{"action_type": "a", "pre_state": fields{}, "session_id": brief}, access).is(403)
			at.post("/v1/transactions/"+begun.text("id")+"/rollback", nil, asKey(w.key)).is(409)
		}
		l.gainsNothing("what is seen again")
	})
}

func TestReachingALimitLeavesOneEventAcrossOperationsAndInstances(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		access := asAgent(w.exchange().access)
		session := w.newSession(fields{"max_actions": 1, "max_value_usd": 1})
		l := w.trail()
		item := fields{"session_id": session, "value_usd": 2}
		for range 2 {
			for _, at := range []tenant{w, there} {
				at.post("/sessions/"+session+"/actions", fields{"value_usd": 2}, access).is(403)
				at.post("/sessions/"+session+"/actions", fields{"count": 2}, asKey(w.key)).is(403)
				at.post("/v1/actions", fields{"actions": []any{item, item}}, access).is(200)
				at.post("/v1/transactions", item.with(fields{"action_type": "a", "pre_state": fields{}}), access).is(403)
			}
		}
		if got := typesOf(l.unread()); got != "session.limit_reached session.limit_reached" {
			t.Errorf("32 refusals by two limits leave %s", got)
		}
		w.post("/sessions/"+session+"/actions", fields{}, access).is(200)
		if got := typesOf(l.unread()); got != "session.limit_warning budget.threshold budget.threshold" { // of actions, whose limit was noted already
			t.Errorf("the last action leaves %s", got)
		}
	})
}

func TestRefusalsAndReadsLeaveNoEvent(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{RefreshGrace: 60e9}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		key, tokens, session := asKey(w.key), w.exchange(), w.newSession(fields{"max_actions": 100, "max_value_usd": 9})
		access := asAgent(tokens.access)
		begin := fields{"action_type": "a", "pre_state": fields{}, "session_id": session, "value_usd": 1}
		committed := w.post("/v1/transactions", begin.with(fields{"reversible": false}), access).is(201).text("id")
		w.post("/v1/transactions/"+committed+"/commit", nil, access).is(200)
		undone := w.post("/v1/transactions", begin, access).is(201).text("id")
		w.post("/v1/transactions/"+undone+"/rollback", nil, key).is(200)
		ended := w.newSession(nil)
		w.post("/sessions/"+ended+"/end", nil, key).is(200)
		spent := w.exchange()
		once := header("Idempotency-Key", "k1")
		w.post("/sessions", fields{"agent_id": w.agent.id}, key, once).is(201)
		w.post("/sessions/"+ended+"/actions", fields{}, access, once).is(403)
		w.post("/v1/transactions", begin, access, header("Idempotency-Key", "k2")).is(201)
		l := w.trail()

		expect := func(status int, method, path string, body any, options ...option) {
			t.Helper()
			w.ask(method, path, body, options...).is(status)
			l.gainsNothing(method + " " + path)
		}
		agentPath, sessionPath := "/v1/agents/"+w.agent.id, "/sessions/"+session
		expect(401, "POST", "/v1/auth/token", fields{"agent_id": w.agent.id, "secret": other.agent.secret})
		expect(400, "POST", "/oauth2/token", byPost(w.agent, "grant_type", "client_credentials", "scope", "admin"),
			header("Content-Type", "application/x-www-form-urlencoded"))
		expect(401, "POST", "/v1/auth/refresh", fields{"refresh_token": tokens.refresh + "x"})
		expect(404, "DELETE", agentPath+"/families/"+spent.family(), nil, asKey(other.key))
		expect(404, "DELETE", "/v1/agents/"+w.newAgent().id+"/families/"+spent.family(), nil, key)
		expect(200, "GET", agentPath+"/families", nil, key)
		expect(403, "POST", "/v1/auth/revoke", fields{"refresh_token": other.exchange().refresh}, access)
		expect(404, "POST", agentPath+"/secret/rotate", nil, asKey(other.key))
		expect(400, "POST", agentPath+"/secret/rotate", fields{"grace_seconds": -1}, key)
		expect(404, "DELETE", agentPath, nil, asKey(other.key))
		expect(401, "DELETE", agentPath, nil, access)
		expect(404, "POST", "/sessions", fields{"agent_id": w.agent.id}, asKey(other.key))
		expect(400, "POST", "/sessions", fields{"agent_id": w.agent.id, "scopes": list("admin")}, key)
		expect(404, "POST", sessionPath+"/actions", fields{}, asKey(other.key))
		expect(403, "POST", sessionPath+"/actions", fields{"scope": "admin"}, key)
		expect(200, "POST", sessionPath+"/actions", fields{"value_usd": 1}, access)
		expect(200, "POST", "/v1/actions", fields{"actions": []any{fields{"session_id": session}}}, key)
		expect(403, "POST", "/sessions/"+ended+"/actions", fields{}, key)
		expect(409, "PATCH", "/sessions/"+ended, fields{"max_actions": 5}, key)
		expect(409, "PATCH", sessionPath, fields{"max_actions": 1}, key)
		expect(400, "PATCH", sessionPath, fields{"max_actions": 0}, key)
		expect(404, "POST", sessionPath+"/end", nil, asKey(other.key))
		expect(403, "POST", "/v1/transactions", begin.with(fields{"session_id": ended}), access)
		expect(404, "POST", "/v1/transactions", begin.with(fields{"session_id": uuid.NewString()}), access)
		expect(409, "POST", "/v1/transactions/"+committed+"/commit", nil, access)
		expect(409, "POST", "/v1/transactions/"+committed+"/rollback", nil, key)
		expect(409, "POST", "/v1/transactions/"+undone+"/rollback", nil, key)
		expect(403, "POST", "/v1/transactions/"+committed+"/rollback", nil, access)
		expect(409, "PATCH", "/v1/transactions/"+committed, fields{"value_usd": 1}, access)
		expect(400, "PATCH", sessionPath, fields{"add_actions": 1_000_000_000}, key)
		expect(404, "POST", "/v1/transactions/"+undone+"/rollback", nil, asKey(other.key))
		expect(201, "POST", "/sessions", fields{"agent_id": w.agent.id}, key, once) // replayed, as the next ones
		expect(403, "POST", "/sessions/"+ended+"/actions", fields{}, access, once)
		expect(201, "POST", "/v1/transactions", begin, access, header("Idempotency-Key", "k2"))
		expect(422, "POST", "/sessions", fields{"agent_id": w.agent.id, "max_actions": 3}, key, once)
		for _, path := range []string{agentPath, "/v1/agents", sessionPath, "/sessions", "/v1/transactions/" + undone,
			"/v1/transactions", agentPath + "/events"} {
			expect(200, "GET", path, nil, key)
			expect(200, "HEAD", path, nil, key)
		}
		expect(200, "GET", "/v1/auth/verify", nil, access)
		expect(200, "POST", "/v1/auth/introspect", fields{"token": tokens.refresh}, key)
		expect(200, "POST", "/v1/auth/authorize?session_id="+session+"&value_usd=1", nil, access)
	})
}

func TestTheTrailKeepsItsNewestEvents(t *testing.T) {
	t.Parallel()
	with := setup{store: redisstore.Config{EventsKept: 20}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) {
		w := api.newTenant()
		first := w.trail().newest
		for i := range 250 {
			w.change(header("X-Request-Id", strconv.Itoa(i)))
		}
		path := w.eventsPath() + "?limit=200"
		kept := w.get(path, asKey(w.key)).is(200).array()
		if len(kept) < 20 || len(kept) > 120 {
			t.Fatalf("%d events are kept, want about 20", len(kept))
		}
		for i, event := range kept {
			if want := strconv.Itoa(250 - len(kept) + i); event["request_id"] != want {
				t.Fatalf("event %d of %d is of request %v, want %s", i, len(kept), event["request_id"], want)
			}
		}
		w.wantPages(path+"&after="+first, asKey(w.key), w.get(path, asKey(w.key)).ids()) // its own event is gone
	})
}

// valueThreshold is the event of a threshold of max_value_usd, actionThreshold of max_actions.
func valueThreshold(session string, percent int, value, of string) fields {
	return fields{"type": "budget.threshold", "session_id": session, "data": map[string]any{"budget": "session", "limit": "max_value_usd",
		"threshold": num(percent), "value_usd": num(value), "max_value_usd": num(of)}}
}

func actionThreshold(session string, percent, count, of int) fields {
	return fields{"type": "budget.threshold", "session_id": session, "data": map[string]any{"budget": "session", "limit": "max_actions",
		"threshold": num(percent), "action_count": num(count), "max_actions": num(of)}}
}
