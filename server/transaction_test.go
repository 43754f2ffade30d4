package server_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// newTransactionFields is what an answer shows of a transaction that was begun with nothing but what it needs.
func newTransactionFields(w tenant) fields {
	return fields{
		"id": anID, "agent_id": w.agent.id, "status": "pending", "action_type": "call", "value_usd": 0, "value_held_usd": 0,
		"overage_usd": 0, "reversible": true, "pre_state": fields{}, "metadata": fields{},
		"expires_at": aboutIn(5 * time.Minute), "created_at": aboutNow,
	}
}

// wantUsage fails the test unless the session, as its organization reads it, has these values and is otherwise as before. If
// nothing else is said, what it used is what was ever committed.
func (w tenant) wantUsage(before, changed fields) {
	w.t.Helper()
	if used, given := changed["value_used_usd"]; given && changed["value_committed_usd"] == nil {
		changed = changed.with(fields{"value_committed_usd": used})
	}
	if found := differences(w.session(before["id"].(string)), before.with(changed)); found != "" {
		w.t.Errorf("the session: %s", found)
	}
}

// wantUntouched fails the test if a session or transaction differs from what it was.
func (w tenant) wantUntouched(session, transaction fields) {
	w.t.Helper()
	w.wantUsage(session, nil)
	if found := differences(w.transaction(transaction["id"].(string)), transaction); found != "" {
		w.t.Errorf("the transaction: %s", found)
	}
}

// problemFields is what every problem has, with members of its own.
func problemFields(status int, code string, members fields) fields {
	return fields{
		"type": someText, "title": someText, "detail": someText, "status": status, "code": code, "request_id": someText,
	}.with(members)
}

func TestBeginShowsTheDefaultsOfMissingFields(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		begun := w.beginAs(access, nil).is(201).exactly(newTransactionFields(w))
		if got, want := begun.header.Get("Location"), "/v1/transactions/"+begun.text("id"); got != want {
			t.Errorf("Location %q, want %q", got, want)
		}
		wantLifetime(t, begun.object(), 5*time.Minute)
		for _, as := range []option{access, asKey(w.key)} {
			if got := w.get(begun.header.Get("Location"), as).is(200); string(got.body) != string(begun.body) {
				t.Errorf("it reads %s, and was begun as %s", got.body, begun.body)
			}
		}
	})
}

func TestBeginStoresEveryField(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		for _, test := range []struct {
			settings fields
			lifetime time.Duration
		}{
			{fields{"expires_in_seconds": 20}, 20 * time.Second},
			{fields{"expires_in_seconds": 2_592_000}, 30 * 24 * time.Hour},
			{fields{"reversible": false, "metadata": fields{"k": list("v")}}, 5 * time.Minute},
			{fields{"action_type": "ä", "pre_state": fields{"b": num("1.50"), "a": fields{"c": nil}}}, 5 * time.Minute},
		} {
			begun := w.beginAs(access, test.settings).is(201)
			want := newTransactionFields(w).with(test.settings).without("expires_in_seconds").
				with(fields{"expires_at": aboutIn(test.lifetime)})
			if state, given := test.settings["pre_state"].(fields); given {
				want["pre_state"] = state.with(fields{"a": map[string]any{"c": nil}})
			}
			begun.exactly(want)
			wantLifetime(t, begun.object(), test.lifetime)
			w.get("/v1/transactions/"+begun.text("id"), access).is(200).exactly(begun.object())
		}
	})
}

func TestTheTransactionsOfASessionHoldCountAndAreNumbered(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		before := w.session(id)
		for i, held := range []string{"1.5", "2", "3.5"} {
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": num([]string{"1.5", "0.5", "1.5"}[i])}).is(201)
			value := begun.object()["value_usd"]
			begun.exactly(newTransactionFields(w).with(fields{
				"session_id": id, "sequence_number": i + 1, "value_usd": value, "value_held_usd": value,
			}))
			w.wantUsage(before, fields{"action_count": i + 1, "value_held_usd": num(held)})
		}
	})
}

// The session has 5 USD, of which 1 is used; the transaction holds 2, another 0.5.
func TestACommitAndItsRollbackShowWhatTheyDid(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.agent = w.newAgentWith("transactions:rollback")
		admin := w
		admin.agent = w.newAgentWith("x", "admin")
		for _, test := range []struct {
			name                   string
			of                     tenant
			body                   any
			charged, used, overage string
			reason                 string
			byKey                  bool // it is rolled back by, else by its agent
		}{
			{"nothing said", w, nil, "2", "3", "0", "", true},
			{"an empty object", admin, fields{}, "2", "3", "0", "r", false},
			{"below the hold", w, fields{"value_usd": num("0.000001")}, "0.000001", "1.000001", "0", "ä", false},
			{"over the limit", w, fields{"value_usd": num("3.500001"), "post_state": fields{"k": num("1.0")}}, "3.5", "4.5", "0.000001", "", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				w := test.of.through(w.client.in(t))
				access := asAgent(w.exchange().access)
				id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
				w.post("/sessions/"+id+"/actions", fields{"value_usd": 1}, access).is(200)
				w.beginAs(access, fields{"session_id": id, "value_usd": num("0.5")}).is(201)
				begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "pre_state": fields{"was": "so"}}).is(201)
				before, path := w.session(id), "/v1/transactions/"+begun.text("id")

				committed := w.post(path+"/commit", test.body, access).is(200)

				want := newTransactionFields(w).with(fields{
					"session_id": id, "sequence_number": 2, "status": "committed", "value_usd": num(test.charged),
					"overage_usd": num(test.overage), "pre_state": fields{"was": "so"}, "committed_at": aboutNow,
				})
				if body, _ := test.body.(fields); body["post_state"] != nil {
					want["post_state"] = body["post_state"]
				}
				committed.exactly(want)
				w.get(path, access).is(200).exactly(committed.object())
				w.wantUsage(before, fields{
					"value_used_usd": num(test.used), "value_held_usd": num("0.5"), "value_overage_usd": num(test.overage),
				})

				body, as := fields{}, access
				want = committed.object().with(fields{"status": "rolled_back", "rolled_back_at": aboutNow})
				if test.reason != "" {
					body["reason"], want["reason"] = test.reason, test.reason
				}
				if test.byKey {
					as = asKey(w.key)
				}
				undone := w.post(path+"/rollback", body, as).is(200).exactly(want)
				w.get(path, access).is(200).exactly(undone.object())
				w.wantUsage(before, fields{"value_held_usd": num("0.5"), "value_committed_usd": num(test.used)})
			})
		}
	})
}

func TestAnAgentReleasesItsPendingHoldWithoutAScope(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, id := asAgent(w.exchange().access), w.newSession(fields{"scopes": list()})
		before := w.session(id)
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201)
		w.post("/v1/transactions/"+begun.text("id")+"/rollback", nil, access).is(200).
			exactly(begun.object().with(fields{"status": "rolled_back", "value_held_usd": 0, "rolled_back_at": aboutNow}))
		w.wantUsage(before, fields{"action_count": 1})
	})
}

func TestAnAgentWithoutTheScopeUndoesNoCommit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.agent = w.newAgentWith("transactions", "rollback", "transactions:rollback2", "Admin", "transactions:Rollback")
		access := asAgent(w.exchange().access)
		id := w.newSession(nil)
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201).text("id")
		w.post("/v1/transactions/"+begun+"/commit", nil, access).is(200)
		session, transaction := w.session(id), w.transaction(begun)
		for _, with := range []option{access, both(access, keyed("k")), both(access, keyed("k"))} { // which is not kept
			refused := w.post("/v1/transactions/"+begun+"/rollback", fields{"reason": "r"}, with).fresh()
			refused.refused(403, "insufficient_scope").
				exactly(problemFields(403, "insufficient_scope", fields{"required_scope": "transactions:rollback"}))
			want := `Bearer realm="remit", error="insufficient_scope", scope="transactions:rollback"` + itsMetadata
			if got := refused.header.Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate %q, want %q", got, want)
			}
		}
		w.wantUntouched(session, transaction)
		w.post("/v1/transactions/"+uuid.NewString()+"/rollback", nil, access).refused(404, "not_found")
	})
}

// The token's scopes are not enough: a session with fewer scopes limits rollbacks in it.
func TestTheScopesOfASessionBoundTheUndoingOfCommits(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.agent = w.newAgentWith("read", "transactions:rollback", "admin")
		access := asAgent(w.exchange().access)
		for _, test := range []struct {
			name    string
			scopes  any
			allowed bool
		}{
			{"all of the agent's", nil, true},
			{"the scope", list("transactions:rollback"), true},
			{"admin", list("read", "admin"), true},
			{"others", list("read"), false},
			{"none", list(), false},
		} {
			settings := fields{}
			if test.scopes != nil {
				settings["scopes"] = test.scopes
			}
			id := w.newSession(settings)
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201).text("id")
			w.post("/v1/transactions/"+begun+"/commit", nil, access).is(200)
			session, transaction := w.session(id), w.transaction(begun)
			undone := w.post("/v1/transactions/"+begun+"/rollback", nil, access)
			if test.allowed {
				undone.is(200)
				continue
			}
			undone.refused(403, "insufficient_scope").
				exactly(problemFields(403, "insufficient_scope", fields{"required_scope": "transactions:rollback"}))
			w.wantUntouched(session, transaction)
			w.post("/v1/transactions/"+begun+"/rollback", nil, asKey(w.key)).is(200) // an organization may
		}
	})
}
