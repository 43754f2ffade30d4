package server_test

import (
	"strings"
	"testing"
)

func TestAnObservingSessionSaysWhatItsLimitsWouldRefuse(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, l := asAgent(w.exchange().access), w.trail()
		id := w.newSession(fields{"max_actions": 3, "max_value_usd": 1, "enforcement": "observe", "max_lease_seconds": 60})
		created := w.session(id)
		if created["enforcement"] != "observe" || created["observed_refusals"] != num(0) {
			t.Errorf("created as %v", created)
		}
		l.unread()
		path := "/sessions/" + id + "/actions"
		fits := w.post(path, fields{"value_usd": num("0.5")}, access).is(200)
		if _, has := fits.object()["would_refuse"]; has {
			t.Errorf("what fits is %s", fits.body)
		}
		over := fields{"session_id": id, "action_count": 2, "max_actions": 3, "value_used_usd": num("2.5"), "max_value_usd": 1, "value_held_usd": 0,
			"remaining_actions": 1, "remaining_value_usd": 0, "expires_at": created["expires_at"], "would_refuse": "max_value_usd"}
		w.wantUnread(id, func() { w.post(path, fields{"value_usd": 2, "dry_run": true}, access).is(200).exactly(over) })
		charged := w.post(path, fields{"value_usd": 2}, access).is(200).exactly(over)
		l.gains(charged, "agent",
			fields{"type": "session.limit_warning", "session_id": id, "data": map[string]any{"limit": "max_value_usd"}},
			fields{"type": "session.limit_reached", "session_id": id, "data": map[string]any{"limit": "max_value_usd"}},
			valueThreshold(id, 80, "2.5", "1"), valueThreshold(id, 100, "2.5", "1"),
			fields{"type": "session.would_refuse", "session_id": id, "data": map[string]any{"limit": "max_value_usd"}})
		w.beginAs(access, fields{"session_id": id, "value_usd": 1, "dry_run": true}).is(200)
		begun := w.beginAs(access, fields{"session_id": id, "value_usd": 1}).is(201)
		changed := w.patch("/v1/transactions/"+begun.text("id"), fields{"value_usd": 2}, access).is(200)
		leased := w.post("/sessions/"+id+"/leases", fields{"max_value_usd": 5, "expires_in_seconds": 30}, access).is(201)
		batch := w.post("/v1/actions", batchOf(fields{"session_id": id, "count": 5}), access)
		for what, answer := range map[string]fields{"max_value_usd begin": begun.object(), "max_value_usd hold": changed.object(),
			"max_value_usd lease": leased.object(), "max_actions batch": batch.items(1)[0].body} {
			if want, _, _ := strings.Cut(what, " "); answer["would_refuse"] != want {
				t.Errorf("%s: %v", what, answer)
			}
		}
		w.get("/v1/transactions/"+begun.text("id"), access).is(200).exactly(without(changed.object(), "would_refuse"))
		proxy := w.get(authorizePath+"?session_id="+id, access).identifies(w, agentScopes...).remains("0", "0")
		if got := proxy.header.Get("X-Would-Refuse"); got != "max_actions" {
			t.Errorf("X-Would-Refuse %q", got)
		}
		w.get("/sessions/"+id, asKey(w.key)).is(200).exactly(created.with(fields{"action_count": 9, "value_used_usd": num("2.5"),
			"value_held_usd": 7, "value_committed_usd": num("2.5"), "observed_refusals": 6}))
		_, metrics := scraped(t, api.on.address, "GET", "/metrics")
		for _, line := range []string{`remit_observed_refusals_total{limit="max_value_usd"} 4`, `remit_observed_refusals_total{limit="max_actions"} 2`} {
			if !strings.Contains(metrics, "\n"+line+"\n") {
				t.Errorf("the metrics lack %s", line)
			}
		}
	})
}

// wantUnread is wantUnwritten, and leaves the trail to be read.
func (w tenant) wantUnread(session string, do func()) {
	w.t.Helper()
	before := w.session(session)
	do()
	w.get("/sessions/"+session, asKey(w.key)).is(200).exactly(before)
}

func without(object fields, name string) fields {
	delete(object, name)
	return object
}
