package server_test

import (
	"testing"
	"time"
)

func TestTheLimitsOfASessionAreRaisedAndTightened(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		const most = 1_000_000_000
		for _, test := range []struct{ change, want fields }{
			{fields{"max_actions": 4, "max_value_usd": num("12.300000"), "expires_in_seconds": 60},
				fields{"max_actions": 4, "max_value_usd": num("12.3"), "expires_at": aboutIn(time.Minute)}},
			{fields{"max_actions": most, "max_value_usd": most, "expires_in_seconds": 2_592_000},
				fields{"max_actions": most, "max_value_usd": most, "expires_at": aboutIn(30 * 24 * time.Hour)}},
			{fields{"add_actions": most - 10, "add_value_usd": most - 5}, fields{"max_actions": most, "max_value_usd": most}},
			{fields{"add_actions": 1, "max_value_usd": 2}, fields{"max_actions": 11, "max_value_usd": 2}},
			{fields{"max_lease_seconds": 30}, fields{"max_lease_seconds": 30}},
			{fields{"enforcement": "observe"}, fields{"enforcement": "observe", "observed_refusals": 0}},
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

// What each field holds by itself is in TestAFieldBeyondItsBoundsIsRefusedByItsName.
func TestAChangeOfLimitsIsHeldToTheirBoundsTogether(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	path := "/sessions/" + w.newSession(nil)
	wantNothingWritten(t, w.client, func() {
		for field, bad := range map[string][]any{ // the session has 1000 actions and 100 USD
			"add_actions":       {0, 999_999_001, 1_000_000_000},
			"add_value_usd":     {0, num("999999900.000001")},
			"max_committed_usd": {1},
		} {
			for _, value := range bad {
				w.patch(path, fields{field: value}, asKey(w.key)).invalid(field)
			}
		}
		w.patch(path, fields{"max_actions": 5, "add_actions": 1}, asKey(w.key)).invalid("add_actions")
		w.patch(path, fields{"max_value_usd": 5, "add_value_usd": 1}, asKey(w.key)).invalid("add_value_usd")
		w.patch(path, fields{"max_actions": 0, "expires_in_seconds": 0}, asKey(w.key)).invalid("max_actions", "expires_in_seconds")
	})
}
