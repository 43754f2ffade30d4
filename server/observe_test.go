package server_test

import (
	"strings"
	"testing"
)

func TestAnObservingSessionSaysWhatItsLimitsWouldRefuse(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := asAgent(w.exchange().access)
		id := w.newSession(fields{"max_actions": 3, "max_value_usd": 1, "enforcement": "observe", "max_lease_seconds": 60})
		created := w.session(id)
		if created["enforcement"] != "observe" || created["observed_refusals"] != num(0) {
			t.Errorf("created as %v", created)
		}
		path := "/sessions/" + id + "/actions"
		w.post(path, fields{"value_usd": num("0.5")}, access).is(200).lacks("would_refuse")
		over := fields{"session_id": id, "action_count": 2, "max_actions": 3, "value_used_usd": num("2.5"), "max_value_usd": 1, "value_held_usd": 0,
			"remaining_actions": 1, "remaining_value_usd": 0, "expires_at": created["expires_at"], "would_refuse": "max_value_usd"}
		w.wantUnwritten(id, func() { w.post(path, fields{"value_usd": 2, "dry_run": true}, access).is(200).exactly(over) })
		l := w.trail()
		w.post(path, fields{"value_usd": 2}, access).is(200).exactly(over)
		if got := typesOf(l.unread()); !strings.HasSuffix(got, "budget.threshold session.would_refuse") {
			t.Errorf("it leaves %s", got)
		}
		w.beginAs(access, fields{"session_id": id, "value_usd": 1, "dry_run": true}).is(200)
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 1}).is(201).has(fields{"would_refuse": "max_value_usd"}).text("id")
		changed := w.patch("/v1/transactions/"+begun, fields{"value_usd": 2}, access).is(200).has(fields{"would_refuse": "max_value_usd"})
		w.lease(id, fields{"max_value_usd": 5}, access).is(201).has(fields{"would_refuse": "max_value_usd"})
		batch := w.post("/v1/actions", batchOf(fields{"session_id": id, "count": 5}), access)
		if item := batch.items(1)[0]; item.body["would_refuse"] != "max_actions" {
			t.Errorf("a batch: %v", item)
		}
		w.get("/v1/transactions/"+begun, access).is(200).exactly(changed.object().without("would_refuse"))
		proxy := w.get(authorizePath+"?session_id="+id, access).identifies(w, agentScopes...).remains("0", "0")
		wantEqual(t, "X-Would-Refuse", proxy.header.Get("X-Would-Refuse"), "max_actions")
		w.get("/sessions/"+id, asKey(w.key)).is(200).exactly(created.with(fields{"action_count": 9, "value_used_usd": num("2.5"),
			"value_held_usd": 7, "value_committed_usd": num("2.5"), "observed_refusals": 6}))
		w.wantMetrics(`remit_observed_refusals_total{limit="max_value_usd"} 4`, `remit_observed_refusals_total{limit="max_actions"} 2`)
	})
}
