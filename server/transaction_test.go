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

// Without a session there is no limit to hold against: the value is only noted.
func TestATransactionWithoutASessionSettlesAtAnyValue(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		begun := w.beginAs(access, fields{"value_usd": num("12.3")}).is(201)
		if got := begun.object()["value_usd"]; got != num("12.3") {
			t.Errorf("value_usd %v, want 12.3", got)
		}
		path := "/v1/transactions/" + begun.text("id")
		want := newTransactionFields(w).with(fields{"status": "committed", "value_usd": 1_000_000_000, "committed_at": aboutNow})
		w.post(path+"/commit", fields{"value_usd": 1_000_000_000}, access).is(200).exactly(want)
		w.post(path+"/rollback", nil, asKey(w.key)).is(200).
			exactly(want.with(fields{"status": "rolled_back", "rolled_back_at": aboutNow}))
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
		w.post("/sessions/"+id+"/actions", fields{"value_usd": num("1.500001")}, asKey(w.key)).refused(403, "session_limit_reached").
			exactly(problemFields(403, "session_limit_reached", fields{
				"limit": "max_value_usd", "action_count": 3, "max_actions": 10, "value_used_usd": 0, "max_value_usd": 5,
				"value_held_usd": num("3.5"), "remaining_actions": 7, "remaining_value_usd": num("1.5"), "expires_at": before["expires_at"],
			}.with(needs(1, num("1.500001")))))
		w.post("/sessions/"+id+"/actions", fields{"value_usd": num("1.5")}, access).is(200)
	})
}

// The session has 10 actions and 5 USD, of which 1 is used; the transaction holds 2, another 0.5.
func TestACommitChargesWhatFitsAndRecordsTheRest(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		for _, test := range []struct {
			name                   string
			body                   any
			charged, used, overage string
		}{
			{"nothing said", nil, "2", "3", "0"},
			{"an empty object", fields{}, "2", "3", "0"},
			{"as held", fields{"value_usd": 2}, "2", "3", "0"},
			{"below the hold", fields{"value_usd": num("0.000001")}, "0.000001", "1.000001", "0"},
			{"nothing", fields{"value_usd": 0}, "0", "1", "0"},
			{"above the hold", fields{"value_usd": num("3")}, "3", "4", "0"},
			{"to the limit", fields{"value_usd": num("3.5")}, "3.5", "4.5", "0"},
			{"over the limit", fields{"value_usd": num("3.500001")}, "3.5", "4.5", "0.000001"},
			{"far over the limit", fields{"value_usd": 1_000_000_000}, "3.5", "4.5", "999999996.5"},
			{"with a state", fields{"post_state": fields{"k": num("1.0")}}, "2", "3", "0"},
		} {
			t.Run(test.name, func(t *testing.T) {
				w := w.through(w.client.in(t))
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
			})
		}
	})
}

// The value is returned and the action stays counted, whichever caller rolls back and from whichever state.
func TestARollbackReturnsTheValue(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		callers := map[string]struct {
			agent agent
			key   bool
		}{
			"by key": {w.agent, true}, "by scope": {w.newAgentWith("transactions:rollback"), false},
			"by admin": {w.newAgentWith("x", "admin"), false},
		}
		for name, by := range callers {
			w := w
			w.agent = by.agent
			access := asAgent(w.exchange().access)
			as := access
			if by.key {
				as = asKey(w.key)
			}
			for _, test := range []struct {
				name      string
				commit    any
				settle    bool
				reason    string
				committed int // ever
			}{
				{name: "pending", committed: 1}, {name: "pending with a reason", reason: "ä", committed: 1},
				{name: "committed", settle: true, committed: 3},
				{name: "committed above", settle: true, commit: fields{"value_usd": 3}, committed: 4},
				{name: "committed with overage", settle: true, commit: fields{"value_usd": 9, "post_state": fields{"p": "q"}},
					reason: "r", committed: 5},
			} {
				t.Run(name+" "+test.name, func(t *testing.T) {
					w := w.through(w.client.in(t))
					id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
					w.post("/sessions/"+id+"/actions", fields{"value_usd": 1}, access).is(200)
					before := w.session(id)
					stands := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201)
					path := "/v1/transactions/" + stands.text("id")
					want := stands.object().with(fields{"status": "rolled_back", "value_held_usd": 0, "rolled_back_at": aboutNow})
					if test.settle {
						stands = w.post(path+"/commit", test.commit, access).is(200)
						want = stands.object().with(fields{"status": "rolled_back", "rolled_back_at": aboutNow})
					}
					body := fields{}
					if test.reason != "" {
						body, want["reason"] = fields{"reason": test.reason}, test.reason
					}

					undone := w.post(path+"/rollback", body, as).is(200).exactly(want)

					w.get(path, access).is(200).exactly(undone.object())
					w.wantUsage(before, fields{"action_count": 2, "value_committed_usd": test.committed})
				})
			}
		}
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

func TestACommittedTransactionThatWasBegunIrreversibleStaysCommitted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.agent = w.newAgentWith("admin")
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		settings := fields{"session_id": id, "value_usd": 2, "reversible": false}
		committed, pending := w.beginAs(access, settings).is(201).text("id"), w.beginAs(access, settings).is(201).text("id")
		w.post("/v1/transactions/"+committed+"/commit", nil, access).is(200)
		session, transaction := w.session(id), w.transaction(committed)
		for _, as := range []option{asKey(w.key), access} {
			w.post("/v1/transactions/"+committed+"/rollback", nil, as).refused(409, "transaction_not_reversible").
				exactly(problemFields(409, "transaction_not_reversible", fields{"transaction_status": "committed"}))
			w.wantUntouched(session, transaction)
		}
		w.post("/v1/transactions/"+pending+"/rollback", nil, access).is(200)
	})
}

func TestASettledTransactionIsNotSettledAgain(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.agent = w.newAgentWith("transactions:rollback")
		access := asAgent(w.exchange().access)
		for _, test := range []struct {
			status   string
			settings fields
			settle   func(w tenant, session, path string)
			refuses  []string
		}{
			{"committed", nil, func(w tenant, _, path string) { w.post(path+"/commit", nil, access).is(200) }, []string{"/commit"}},
			{"rolled_back", nil, func(w tenant, _, path string) { w.post(path+"/rollback", nil, access).is(200) },
				[]string{"/commit", "/rollback"}},
			{"rolled_back", nil, func(w tenant, session, _ string) { w.post("/sessions/"+session+"/end", nil, access).is(200) },
				[]string{"/commit", "/rollback"}},
			{"expired", fields{"expires_in_seconds": 1}, func(w tenant, _, path string) {
				eventually(w.t, "the transaction has expired", func() bool { return w.get(path, access).text("status") == "expired" })
			}, []string{"/rollback"}},
		} {
			id := w.newSession(nil)
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}.with(test.settings)).is(201).text("id")
			path := "/v1/transactions/" + begun
			test.settle(w, id, path)
			session, transaction := w.session(id), w.transaction(begun)
			if transaction["status"] != test.status || session["value_held_usd"] != num(0) {
				t.Errorf("%s: %v %v", test.status, transaction, session)
			}
			for _, what := range test.refuses {
				callers := []option{access}
				if what == "/rollback" {
					callers = append(callers, asKey(w.key))
				}
				for _, as := range callers {
					w.post(path+what, nil, as).refused(409, "transaction_not_pending").
						exactly(problemFields(409, "transaction_not_pending", fields{"transaction_status": test.status}))
					w.wantUntouched(session, transaction)
				}
			}
		}
	})
}

func TestEndingASessionRollsItsPendingTransactionsBack(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		pending := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201)
		committed := w.beginAs(access, fields{"session_id": id, "value_usd": 3}).is(201).text("id")
		settled := w.post("/v1/transactions/"+committed+"/commit", nil, access).is(200).object()

		ended := w.post("/sessions/"+id+"/end", nil, access).is(200).text("ended_at")

		want := pending.object().with(fields{"status": "rolled_back", "value_held_usd": 0, "rolled_back_at": ended})
		w.get("/v1/transactions/"+pending.text("id"), access).is(200).exactly(want)
		w.get("/v1/transactions/"+committed, access).is(200).exactly(settled)
		if s := w.session(id); s["value_held_usd"] != num(0) || s["value_used_usd"] != num(3) || s["action_count"] != num(2) {
			t.Errorf("the session is %v", s)
		}
		// What was committed can be undone still.
		w.post("/v1/transactions/"+committed+"/rollback", nil, asKey(w.key)).is(200)
		if s := w.session(id); s["value_used_usd"] != num(0) || s["status"] != "completed" {
			t.Errorf("the session is %v", s)
		}
	})
}

// A session that is used up or over lets its transactions settle: their actions may have happened.
func TestATransactionSettlesInASessionThatTakesNoMore(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 2, "max_value_usd": 5})
		first := w.beginAs(access, fields{"session_id": id, "value_usd": 3}).is(201).text("id")
		second := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201).text("id")
		w.patch("/v1/sessions/"+id, fields{"expires_in_seconds": 1}, asKey(w.key)).is(200)
		eventually(t, "the session has expired", func() bool { return w.session(id)["status"] == "expired" })
		before := w.session(id)
		w.post("/v1/transactions/"+first+"/commit", nil, access).is(200)
		w.post("/v1/transactions/"+second+"/rollback", nil, asKey(w.key)).is(200)
		w.wantUsage(before, fields{"value_used_usd": 3, "value_held_usd": 0})
	})
}

func TestTheTransactionsOfARevokedAgentAreItsOrganizations(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, id := asAgent(w.exchange().access), w.newSession(nil)
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 3}).is(201).text("id")
		w.revoke()
		session, transaction := w.session(id), w.transaction(begun)
		w.beginAs(access, nil).refused(401, "invalid_token")
		for _, id := range []string{begun, uuid.NewString()} {
			w.post("/v1/transactions/"+id+"/commit", nil, access).refused(401, "invalid_token")
			w.get("/v1/transactions/"+id, access).refused(401, "invalid_token")
		}
		w.get("/v1/transactions", access).refused(401, "invalid_token")
		w.wantUntouched(session, transaction)
		w.post("/v1/transactions/"+begun+"/rollback", nil, asKey(w.key)).is(200)
		w.wantUsage(session, fields{"value_held_usd": 0})
	})
}

func TestABeginThatDoesNotFitHoldsNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		for _, test := range []struct {
			settings, want fields
			value          string
		}{
			{fields{"max_actions": 1}, fields{"limit": "max_actions", "action_count": 1, "max_actions": 1, "remaining_actions": 0}, "0"},
			{fields{"max_actions": 9}, fields{"limit": "max_value_usd", "action_count": 1, "max_actions": 9, "remaining_actions": 8}, "3.000001"},
		} {
			id := w.newSession(test.settings.with(fields{"max_value_usd": 5}))
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2}).is(201).text("id")
			before, transaction := w.session(id), w.transaction(begun)
			refused := w.beginAs(access, fields{"session_id": id, "value_usd": num(test.value)}).refused(403, "session_limit_reached")
			refused.exactly(problemFields(403, "session_limit_reached", test.want.with(fields{
				"value_used_usd": 0, "max_value_usd": 5, "value_held_usd": 2, "remaining_value_usd": 3, "expires_at": before["expires_at"],
			}).with(needs(1, num(test.value)))))
			if got := refused.header.Get("Location"); got != "" {
				t.Errorf("a refusal has the Location %s", got)
			}
			w.wantUntouched(before, transaction)
			w.wantPages("/v1/transactions?session_id="+id, asKey(w.key), []string{begun})
		}
	})
}

func TestAnInactiveSessionAcceptsNoTransaction(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		ended, expired := w.newSession(nil), w.newSession(fields{"expires_in_seconds": 1})
		w.post("/sessions/"+ended+"/end", nil, access).is(200)
		eventually(t, "the session has expired", func() bool { return w.session(expired)["status"] == "expired" })
		for status, id := range map[string]string{"completed": ended, "expired": expired} {
			before := w.session(id)
			w.beginAs(access, fields{"session_id": id, "value_usd": 1}).refused(403, "session_not_active").
				exactly(problemFields(403, "session_not_active", fields{"session_status": status}))
			w.wantUsage(before, nil)
		}
		w.wantPages("/v1/transactions", asKey(w.key), []string{})
	})
}

func TestAnotherOrganizationsTransactionLooksUnknown(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		w.agent = w.newAgentWith("transactions:rollback")
		colleague := w
		colleague.agent = w.newAgent()
		key, access := asKey(w.key), asAgent(w.exchange().access)
		for _, owner := range []tenant{other, colleague} {
			id := owner.newSession(nil)
			begun := owner.begin(fields{"session_id": id, "value_usd": 1})
			session, transaction := owner.session(id), owner.transaction(begun)
			callers := []option{access}
			if owner.org != w.org {
				callers = append(callers, key)
			}
			for i, as := range callers {
				for _, e := range []endpoint{{"GET", "", nil}, {"POST", "/rollback", nil}, {"POST", "/commit", fields{"value_usd": 2}}} {
					if i == 1 && e.path == "/commit" { // which is not for keys
						continue
					}
					foreign := w.ask(e.method, "/v1/transactions/"+begun+e.path, e.body, as).refused(404, "not_found")
					wantSameAnswer(t, foreign, w.ask(e.method, "/v1/transactions/"+uuid.NewString()+e.path, e.body, as))
				}
			}
			foreign := w.beginAs(access, fields{"session_id": id}).refused(404, "not_found")
			wantSameAnswer(t, foreign, w.beginAs(access, fields{"session_id": uuid.NewString()}))
			owner.wantUntouched(session, transaction)
			owner.wantPages("/v1/transactions?session_id="+id, asKey(owner.key), []string{begun})
		}
		w.wantPages("/v1/transactions", access, []string{})
	})
}

func TestOnlyAnAgentBeginsAndCommits(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(nil)
		begun := w.begin(fields{"session_id": id, "value_usd": 1})
		session, transaction := w.session(id), w.transaction(begun)
		w.beginAs(asKey(w.key), fields{"session_id": id}).refused(401, "missing_credentials")
		w.post("/v1/transactions/"+begun+"/commit", nil, asKey(w.key)).refused(401, "missing_credentials")
		w.wantUntouched(session, transaction)
	})
}
