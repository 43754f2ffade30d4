package server_test

import (
	"testing"
	"time"
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
	wantFields(w.t, "the session", w.session(before["id"].(string)), before.with(changed))
}

// problemFields is what every problem has, with members of its own.
func problemFields(status int, code string, members fields) fields {
	return fields{
		"type": someText, "title": someText, "detail": someText, "status": status, "code": code, "request_id": someText,
	}.with(members)
}

func TestBeginStoresEveryFieldOrItsDefault(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		for _, test := range []struct {
			settings fields
			lifetime time.Duration
		}{
			{nil, 5 * time.Minute}, {fields{"expires_in_seconds": 20}, 20 * time.Second},
			{fields{"expires_in_seconds": 2_592_000}, 30 * 24 * time.Hour},
			{fields{"reversible": false, "metadata": fields{"k": list("v")}}, 5 * time.Minute},
			{fields{"action_type": "ä", "pre_state": fields{"b": num("1.50"), "a": map[string]any{"c": nil}}}, 5 * time.Minute},
		} {
			begun := w.beginAs(access, test.settings).is(201)
			begun.exactly(newTransactionFields(w).with(test.settings).without("expires_in_seconds").
				with(fields{"expires_at": aboutIn(test.lifetime)}))
			wantLifetime(t, begun.object(), test.lifetime)
			for _, as := range []option{access, asKey(w.key)} {
				if got := w.get(begun.header.Get("Location"), as).is(200); string(got.body) != string(begun.body) {
					t.Errorf("it reads %s, and was begun as %s", got.body, begun.body)
				}
			}
		}
	})
}

// The session has 5 USD, of which 1 is used; the transaction holds 2, another 0.5.
func TestACommitAndItsRollbackShowWhatTheyDid(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		w.agent = w.newAgentWith("transactions:rollback")
		admin := w
		admin.agent = w.newAgentWith("x", "admin")
		for _, test := range []struct {
			of                     tenant
			commit, rollback       any
			charged, used, overage string
			byKey                  bool // it is rolled back by, else by its agent
		}{
			{w, nil, nil, "2", "3", "0", true},
			{admin, fields{}, fields{"reason": "r"}, "2", "3", "0", false},
			{w, fields{"value_usd": num("3.500001"), "post_state": fields{"k": num("1.0")}}, fields{}, "3.5", "4.5", "0.000001", false},
		} {
			w, access := test.of, asAgent(test.of.exchange().access)
			id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
			w.post("/sessions/"+id+"/actions", fields{"value_usd": 1}, access).is(200)
			w.beginAs(access, fields{"session_id": id, "value_usd": num("0.5")}).is(201)
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 2, "pre_state": fields{"was": "so"}}).is(201).
				exactly(newTransactionFields(w).with(fields{"session_id": id, "sequence_number": 2, "value_usd": 2, "value_held_usd": 2,
					"pre_state": fields{"was": "so"}}))
			before, path := w.session(id), "/v1/transactions/"+begun.text("id")

			want := begun.object().with(fields{"status": "committed", "value_usd": num(test.charged), "value_held_usd": 0,
				"overage_usd": num(test.overage), "committed_at": aboutNow})
			if body, _ := test.commit.(fields); body["post_state"] != nil {
				want["post_state"] = body["post_state"]
			}
			committed := w.post(path+"/commit", test.commit, access).is(200).exactly(want)
			w.get(path, access).is(200).exactly(committed.object())
			w.wantUsage(before, fields{"value_used_usd": num(test.used), "value_held_usd": num("0.5"), "value_overage_usd": num(test.overage)})

			want = committed.object().with(fields{"status": "rolled_back", "rolled_back_at": aboutNow})
			if body, _ := test.rollback.(fields); body["reason"] != nil {
				want["reason"] = body["reason"]
			}
			as := access
			if test.byKey {
				as = asKey(w.key)
			}
			undone := w.post(path+"/rollback", test.rollback, as).is(200).exactly(want)
			w.get(path, access).is(200).exactly(undone.object())
			w.wantUsage(before, fields{"value_held_usd": num("0.5"), "value_committed_usd": num(test.used)})
		}
	})
}
