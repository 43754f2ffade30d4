package server_test

import "testing"

func TestASessionHasThresholdsOfItsOwn(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		key := asKey(w.key)
		shown := func(r *response, want ...any) {
			t.Helper()
			got, given := r.object()["thresholds"].([]any)
			if len(got) != len(want) || given != (want != nil) {
				t.Fatalf("thresholds are %v, want %v", got, want)
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("thresholds are %v, want %v", got, want)
				}
			}
		}
		l := w.trail()
		made := w.post("/sessions", fields{"agent_id": w.agent.id, "max_actions": 10, "thresholds": []int{100, 30}}, key).is(201)
		id := made.text("id")
		shown(made, num(30), num(100))
		l.gains(made, "api_key", fields{"type": "session.created", "session_id": id, "data": map[string]any{"max_actions": num(10),
			"max_value_usd": made.object()["max_value_usd"], "thresholds": []any{num(30), num(100)}, "expires_at": made.text("expires_at")}})
		path := "/sessions/" + id
		shown(w.get(path, key).is(200), num(30), num(100))
		l.gains(w.post(path+"/actions", fields{"count": 3}, key).is(200), "api_key", actionThreshold(id, 30, 3, 10))
		shown(w.patch(path, fields{"thresholds": []int{99}}, key).is(200), num(99))
		shown(w.get(path, key).is(200), num(99))
		shown(w.patch(path, fields{"max_actions": 11}, key).is(200), num(99))
		shown(w.patch(path, fields{"thresholds": []int{}}, key).is(200), []any{}...)
		shown(w.patch(path, fields{"thresholds": nil}, key).is(200))
		shown(w.post("/sessions", fields{"agent_id": w.agent.id, "thresholds": []int{80, 100}}, key).is(201))
		child := w.post("/sessions", fields{"agent_id": w.agent.id, "parent_session_id": id, "max_actions": 2, "max_value_usd": 0, "thresholds": []int{50}}, key).is(201)
		shown(child, num(50))
		l.unread()
		l.gains(w.post("/sessions/"+child.text("id")+"/actions", fields{}, key).is(200), "api_key", actionThreshold(child.text("id"), 50, 1, 2))

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
		shown(w.get(path, key).is(200))
	})
}
