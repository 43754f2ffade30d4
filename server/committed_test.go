package server_test

import "testing"

// Begin, commit and roll back in a loop pass any sum through a limit: value_committed_usd shows it, max_committed_usd ends it.
func TestMaxCommittedEndsALoopOfRollbacks(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.agent = w.newAgentWith("transactions:rollback")
		access := asAgent(w.exchange().access)
		created := w.post("/sessions", fields{"agent_id": w.agent.id, "max_value_usd": 5, "max_committed_usd": 12}, asKey(w.key)).is(201)
		created.exactly(newSessionFields(w).with(fields{"max_value_usd": 5, "max_committed_usd": 12, "scopes": list("transactions:rollback")}))
		id := created.text("id")
		w.get("/sessions/"+id, access).is(200).exactly(created.object())
		for range 2 {
			begun := w.beginAs(access, fields{"session_id": id, "value_usd": 5}).is(201).text("id")
			w.post("/v1/transactions/"+begun+"/commit", nil, access).is(200)
			w.post("/v1/transactions/"+begun+"/rollback", nil, access).is(200)
		}
		before := w.session(id)
		w.wantUsage(created.object(), fields{"action_count": 2, "value_committed_usd": 10})
		refused := w.beginAs(access, fields{"session_id": id, "value_usd": num("2.000001")}).refused(403, "session_limit_reached")
		refused.exactly(problemFields(403, "session_limit_reached", fields{
			"limit": "max_committed_usd", "action_count": 2, "max_actions": 1000, "value_used_usd": 0, "max_value_usd": 5,
			"value_held_usd": 0, "remaining_actions": 998, "remaining_value_usd": 2, "expires_at": before["expires_at"],
		}.with(needs(1, num("2.000001")))))
		w.wantUsage(before, nil)
		w.post("/sessions/"+id+"/actions", fields{"value_usd": 2}, access).is(200).exactly(fields{
			"session_id": id, "action_count": 3, "max_actions": 1000, "value_used_usd": 2, "max_value_usd": 5, "value_held_usd": 0,
			"remaining_actions": 997, "remaining_value_usd": 0, "expires_at": before["expires_at"],
		})
		w.post("/sessions/"+id+"/actions", fields{"value_usd": num("0.000001")}, asKey(w.key)).refused(403, "session_limit_reached")
		w.wantUsage(before, fields{"action_count": 3, "value_used_usd": 2, "value_committed_usd": 12})
	})
}

func TestTheEventsOfASessionNameMaxCommitted(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		l := w.trail()
		created := w.post("/sessions", fields{"agent_id": w.agent.id, "max_value_usd": 5, "max_committed_usd": 1}, asKey(w.key)).is(201)
		id := created.text("id")
		l.gains(created, "api_key", fields{"type": "session.created", "session_id": id, "data": map[string]any{
			"max_actions": num("1000"), "max_value_usd": num("5"), "max_committed_usd": num("1"),
			"expires_at": created.text("expires_at")}})
		charged := w.post("/sessions/"+id+"/actions", fields{"value_usd": num("0.8")}, asKey(w.key)).is(200)
		l.gains(charged, "api_key", fields{"type": "session.limit_warning", "session_id": id,
			"data": map[string]any{"limit": "max_committed_usd"}},
			fields{"type": "budget.threshold", "session_id": id, "data": map[string]any{"budget": "session", "limit": "max_committed_usd",
				"threshold": num(80), "value_usd": num("0.8"), "max_committed_usd": num(1)}})
	})
}
