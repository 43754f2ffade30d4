package server_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestTheLimitsOfASessionAreRaisedAndTightened(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		for _, test := range []struct{ change, want fields }{
			{fields{"max_actions": 4}, fields{"max_actions": 4}},
			{fields{"max_actions": 1_000_000_000}, fields{"max_actions": 1_000_000_000}},
			{fields{"max_value_usd": 2}, fields{"max_value_usd": 2}},
			{fields{"max_value_usd": num("1000000000")}, fields{"max_value_usd": 1_000_000_000}},
			{fields{"max_value_usd": num("12.300000")}, fields{"max_value_usd": num("12.3")}},
			{fields{"expires_in_seconds": 60}, fields{"expires_at": aboutIn(time.Minute)}},
			{fields{"expires_in_seconds": 2_592_000}, fields{"expires_at": aboutIn(30 * 24 * time.Hour)}},
			{
				fields{"max_actions": 7, "max_value_usd": num("1.75"), "expires_in_seconds": 7200},
				fields{"max_actions": 7, "max_value_usd": num("1.75"), "expires_at": aboutIn(2 * time.Hour)},
			},
			{fields{"add_actions": 1}, fields{"max_actions": 11}},
			{fields{"add_value_usd": num("0.000001")}, fields{"max_value_usd": num("5.000001")}},
			{fields{"add_actions": 999_999_990, "add_value_usd": 999_999_995},
				fields{"max_actions": 1_000_000_000, "max_value_usd": 1_000_000_000}},
			{fields{"add_actions": 1, "max_value_usd": 2}, fields{"max_actions": 11, "max_value_usd": 2}},
		} {
			for _, prefix := range withAndWithoutV1 {
				id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5, "metadata": fields{"k": "v"}, "scopes": list("read")})
				w.post("/sessions/"+id+"/actions", fields{"count": 3, "value_usd": num("0.5")}, asKey(w.key)).is(200)
				w.beginAs(access, fields{"session_id": id, "value_usd": num("1.25")}).is(201)
				before := w.session(id)
				changed := w.patch(prefix+"/sessions/"+id, test.change, asKey(w.key)).is(200).exactly(before.with(test.want))
				for _, as := range []option{asKey(w.key), access} {
					w.get("/sessions/"+id, as).is(200).exactly(changed.object())
				}
			}
		}
	})
}

func TestChangedLimitsApplyToTheNextCharge(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		id := w.newSession(fields{"max_actions": 1, "max_value_usd": 1})
		charge := func(limit string) {
			t.Helper()
			r := there.post("/sessions/"+id+"/actions", fields{"value_usd": 1}, asKey(w.key))
			if limit == "" {
				r.is(200)
			} else if got := r.refused(403, "session_limit_reached").text("limit"); got != limit {
				t.Errorf("refused for %s, want %s", got, limit)
			}
		}
		charge("")
		charge("max_actions")
		w.patch("/sessions/"+id, fields{"max_actions": 5}, asKey(w.key)).is(200)
		charge("max_value_usd")
		w.patch("/sessions/"+id, fields{"max_value_usd": 5}, asKey(w.key)).is(200)
		charge("")
		w.patch("/sessions/"+id, fields{"max_actions": 2, "max_value_usd": 2}, asKey(w.key)).is(200)
		charge("max_actions")
		w.patch("/sessions/"+id, fields{"max_actions": 5, "expires_in_seconds": 1}, asKey(w.key)).is(200)
		eventually(t, "the session has expired", func() bool { return w.session(id)["status"] == "expired" })
		there.post("/sessions/"+id+"/actions", fields{}, asKey(w.key)).refused(403, "session_not_active")
	})
}

func TestALimitIsNeverSetBelowWhatIsUsedAndHeld(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		w.post("/sessions/"+id+"/actions", fields{"count": 3, "value_usd": num("0.5")}, asKey(w.key)).is(200)
		w.begin(fields{"session_id": id, "value_usd": num("1.25")})
		before := w.session(id)
		stands := fields{
			"action_count": 4, "max_actions": 10, "value_used_usd": num("0.5"), "max_value_usd": 5, "value_held_usd": num("1.25"),
			"remaining_actions": 6, "remaining_value_usd": num("3.25"), "expires_at": before["expires_at"],
		}
		for _, test := range []struct {
			change fields
			limit  string
		}{
			{fields{"max_actions": 3}, "max_actions"},
			{fields{"max_actions": 1, "max_value_usd": 100}, "max_actions"},
			{fields{"max_value_usd": num("1.749999")}, "max_value_usd"},
			{fields{"max_value_usd": 0}, "max_value_usd"},
			{fields{"max_value_usd": num("0.5"), "max_actions": 100, "expires_in_seconds": 5}, "max_value_usd"},
		} {
			for _, prefix := range withAndWithoutV1 {
				w.patch(prefix+"/sessions/"+id, test.change, asKey(w.key)).refused(409, "limit_below_usage").
					exactly(problemFields(409, "limit_below_usage", stands.with(fields{"limit": test.limit})))
				w.wantUsage(before, nil)
			}
		}
		w.patch("/sessions/"+id, fields{"max_actions": 4, "max_value_usd": num("1.75")}, asKey(w.key)).is(200).
			exactly(before.with(fields{"max_actions": 4, "max_value_usd": num("1.75")}))
	})
}

func TestTheLimitsOfASessionThatIsNotActiveStay(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		revoked := w
		revoked.agent = w.newAgent()
		ids := map[string]string{
			"completed": w.newSession(nil), "expired": w.newSession(fields{"expires_in_seconds": 1}), "revoked": revoked.newSession(nil),
		}
		w.post("/sessions/"+ids["completed"]+"/end", nil, asKey(w.key)).is(200)
		revoked.revoke()
		eventually(t, "the session has expired", func() bool { return w.session(ids["expired"])["status"] == "expired" })
		for status, id := range ids {
			before := w.session(id)
			for _, change := range []fields{{"max_actions": 5000}, {"max_value_usd": 0}, {"expires_in_seconds": 60}} {
				w.patch("/sessions/"+id, change, asKey(w.key)).refused(409, "session_not_active").
					exactly(problemFields(409, "session_not_active", fields{"session_status": status}))
				w.wantUsage(before, nil)
			}
		}
	})
}

func TestOnlyItsOrganizationChangesASession(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		id := w.newSession(nil)
		before, change := w.session(id), fields{"max_actions": 5}
		for _, prefix := range withAndWithoutV1 {
			w.patch(prefix+"/sessions/"+id, change, asAgent(w.exchange().access)).refused(401, "missing_credentials")
			foreign := w.patch(prefix+"/sessions/"+id, change, asKey(other.key)).refused(404, "not_found")
			wantSameAnswer(t, foreign, w.patch(prefix+"/sessions/"+uuid.NewString(), change, asKey(w.key)))
		}
		w.wantUsage(before, nil)
	})
}

func TestAChangeOfLimitsIsHeldToTheirBounds(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	id := w.newSession(nil)
	wantNothingWritten(t, api, func() {
		for _, prefix := range withAndWithoutV1 {
			path := prefix + "/sessions/" + id
			w.patch(path, nil, asKey(w.key)).invalid("")
			w.patch(path, fields{}, asKey(w.key)).invalid("")
			w.patch(path, raw("null"), asKey(w.key)).invalid("")
			for field, bad := range map[string][]any{
				"max_actions":        {0, -1, 1_000_000_001, num("1.5"), nil, "5"},
				"max_value_usd":      {-1, num("1000000000.000001"), num("0.0000001"), nil, "5"},
				"expires_in_seconds": {0, -1, 2_592_001, num("1.5"), nil, "5"},
				"add_actions":        {0, -1, 1_000_000_000, 1_000_000_001, num("1.5"), nil, "5"},
				"add_value_usd":      {0, -1, num("999999900.000001"), num("1000000000.000001"), num("0.0000001"), nil, "5"},
				"max_committed_usd":  {1},
				"agent_id":           {w.agent.id}, "scopes": {list()}, "metadata": {fields{}}, "status": {"completed"},
			} {
				for _, value := range bad {
					w.patch(path, fields{field: value}, asKey(w.key)).invalid(field)
				}
			}
			w.patch(path, fields{"max_actions": 5, "add_actions": 1}, asKey(w.key)).invalid("add_actions")
			w.patch(path, fields{"max_value_usd": 5, "add_value_usd": 1}, asKey(w.key)).invalid("add_value_usd")
			w.patch(path, fields{"max_actions": 0, "expires_in_seconds": 0}, asKey(w.key)).invalid("max_actions", "expires_in_seconds")
		}
		for _, form := range otherForms(id) {
			w.patch("/sessions/"+form, fields{"max_actions": 5}, asKey(w.key)).invalid("id")
		}
	})
}

// Whatever is charged while a limit changes, totals reconcile and the session ends at its limit, not beyond.
func TestALimitThatMovesInARaceIsKeptExactly(t *testing.T) {
	api := onOneRedis(t)
	for _, test := range []struct {
		name  string
		start int
		stop  bool // at the first limit that is set
	}{
		{"raised", 20, false},
		{"tightened", 1000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := api.in(t).newTenant()
			there := w.through(api.another(t))
			id := w.newSession(fields{"max_actions": test.start})
			limit := test.start
			var moving sync.WaitGroup
			moving.Go(func() {
				for next := 40; next <= 400; next += 40 {
					r, err := there.try("PATCH", "/sessions/"+id, fields{"max_actions": next}, asKey(w.key))
					if err != nil || r.status != 200 && r.status != 409 {
						t.Errorf("PATCH: %v %v", r, err)
						return
					}
					if r.status == 200 {
						limit = next
					}
					if r.status == 200 && test.stop {
						return
					}
				}
			})

			charge := fields{"value_usd": num("0.000003")}
			got := race(t, []tenant{w, there}, id, func(int) fields { return charge }, "max_actions")
			moving.Wait()

			for ; w.post("/sessions/"+id+"/actions", charge, asKey(w.key)).status == 200; got.actions++ {
			}
			if s := w.session(id); int(got.actions) != limit || s["action_count"] != num(limit) || s["max_actions"] != num(limit) {
				t.Errorf("%d actions were acknowledged, the session has %v of %v, the limit is %d",
					got.actions, s["action_count"], s["max_actions"], limit)
			}
		})
	}
}
