package server_test

import (
	"testing"
)

func TestASessionHasThresholdsOfItsOwn(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		key := asKey(w.key)
		shown := func(r *response, want any) {
			t.Helper()
			wantEqual(t, "thresholds", r.object()["thresholds"], want)
		}
		l := w.trail()
		made := w.post("/sessions", fields{"agent_id": w.agent.id, "max_actions": 10, "thresholds": []int{100, 30}}, key).is(201)
		id := made.text("id")
		shown(made, []any{num(30), num(100)})
		l.gains(made, "api_key", fields{"type": "session.created", "session_id": id, "data": map[string]any{"max_actions": num(10),
			"max_value_usd": made.object()["max_value_usd"], "thresholds": []any{num(30), num(100)}, "expires_at": made.text("expires_at")}})
		path := "/sessions/" + id
		shown(w.get(path, key).is(200), []any{num(30), num(100)})
		l.gains(w.post(path+"/actions", fields{"count": 3}, key).is(200), "api_key", fields{"type": "budget.threshold", "session_id": id,
			"data": map[string]any{"budget": "session", "limit": "max_actions", "threshold": num(30), "action_count": num(3), "max_actions": num(10)}})
		shown(w.patch(path, fields{"thresholds": []int{99}}, key).is(200), []any{num(99)})
		shown(w.patch(path, fields{"max_actions": 11}, key).is(200), []any{num(99)})
		shown(w.patch(path, fields{"thresholds": []int{}}, key).is(200), []any{})
		shown(w.patch(path, fields{"thresholds": nil}, key).is(200), nil)
		shown(w.post("/sessions", fields{"agent_id": w.agent.id, "thresholds": []int{80, 100}}, key).is(201), nil)
		shown(w.post("/sessions", fields{"agent_id": w.agent.id, "parent_session_id": id, "max_actions": 2, "max_value_usd": 0,
			"thresholds": []int{50}}, key).is(201), []any{num(50)})

		for _, wrong := range []struct {
			value any
			named string
		}{
			{[]int{0}, "thresholds"}, {[]int{101}, "thresholds"}, {[]int{50, 50}, "thresholds"}, {[]any{nil}, "thresholds"},
			{[]int{1, 2, 3, 4, 5, 6, 7, 8, 9}, "thresholds"}, {"80", "thresholds"}, {80, "thresholds"},
			{[]any{"80"}, "thresholds[0]"}, {[]any{0.5}, "thresholds[0]"},
		} {
			w.post("/sessions", fields{"agent_id": w.agent.id, "thresholds": wrong.value}, key).invalid(wrong.named)
			w.patch(path, fields{"thresholds": wrong.value}, key).invalid(wrong.named)
		}
		shown(w.get(path, key).is(200), nil)
	})
}
