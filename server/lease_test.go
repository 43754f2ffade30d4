package server_test

import (
	"testing"
	"time"
)

// leasing returns a session that allows leases of up to a minute.
func (w tenant) leasing(limits fields) string {
	w.t.Helper()
	return w.newSession(fields{"max_actions": 10, "max_value_usd": 5, "max_lease_seconds": 60}.with(limits))
}

// lease grants a lease of a session to a caller.
func (w tenant) lease(session string, wanted fields, as option) *response {
	w.t.Helper()
	return w.post("/v1/sessions/"+session+"/leases", fields{"expires_in_seconds": 30}.with(wanted), as)
}

func TestALeaseCountsWholeInItsSessionUntilItIsSettled(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access, l := asAgent(w.exchange().access), w.trail()
		id := w.leasing(nil)
		w.post("/sessions/"+id+"/actions", fields{"value_usd": 1}, access).is(200)
		before := w.session(id)
		granted := w.lease(id, fields{"max_actions": 4, "max_value_usd": 2}, access).is(201)
		granted.exactly(fields{"id": anID, "session_id": id, "status": "open", "max_actions": 4, "max_value_usd": 2,
			"created_at": aboutNow, "expires_at": aboutIn(30 * time.Second)})
		lease := granted.text("id")
		w.wantUsage(before, fields{"action_count": 5, "value_held_usd": 2})
		w.get(granted.header.Get("Location"), asKey(w.key)).is(200).exactly(granted.object())
		charged := w.post("/sessions/"+id+"/actions", fields{"value_usd": num("0.5")}, access).is(200)
		charged.exactly(fields{"session_id": id, "action_count": 6, "max_actions": 10, "value_used_usd": num("1.5"), "max_value_usd": 5,
			"value_held_usd": 2, "remaining_actions": 4, "remaining_value_usd": num("1.5"), "expires_at": before["expires_at"]})
		l.unread()
		settled := w.post("/v1/leases/"+lease+"/settle", fields{"action_count": 3, "value_used_usd": num("0.75")}, access).is(200)
		settled.exactly(fields{"id": lease, "session_id": id, "status": "settled", "action_count": 3, "value_used_usd": num("0.75"),
			"overage_usd": 0, "overage_actions": 0, "late": false, "settled_at": aboutNow, "renewed": nil, "refusal": nil})
		l.gains(settled, "agent", fields{"type": "lease.settled", "session_id": id, "lease_id": lease, "data": map[string]any{
			"action_count": num("3"), "value_usd": num("0.75"), "overage_usd": num("0")}})
		w.wantUsage(before, fields{"action_count": 5, "value_used_usd": num("2.25"), "value_committed_usd": num("2.25")})
		w.get("/v1/leases/"+lease, access).is(200).exactly(granted.object().with(fields{"status": "settled", "action_count": 3,
			"value_used_usd": num("0.75"), "overage_usd": 0, "overage_actions": 0, "late": false, "settled_at": settled.text("settled_at")}))
	})
}

func TestASettlementRenewsALease(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.leasing(nil)
		before := w.session(id)
		lease := w.lease(id, fields{"max_actions": 10, "max_value_usd": 5}, access).is(201).text("id")
		body := fields{"action_count": 4, "value_used_usd": 1, "by_action_type": fields{
			"read": fields{"action_count": 3, "value_usd": num("0.25")}, "write": fields{"action_count": 1, "value_usd": num("0.75")},
		}, "renew": fields{"max_actions": 100, "max_value_usd": 100, "expires_in_seconds": 100, "partial": true}}
		settled := w.post("/v1/leases/"+lease+"/settle", body, access).is(200)
		renewed := settled.object()["renewed"].(map[string]any)
		settled.exactly(fields{"id": lease, "session_id": id, "status": "settled", "action_count": 4, "value_used_usd": 1,
			"overage_usd": 0, "overage_actions": 0, "late": false, "settled_at": aboutNow, "renewed": renewed, "refusal": nil})
		next, _ := renewed["id"].(string)
		w.get("/v1/leases/"+next, access).is(200).exactly(fields{"id": next, "session_id": id, "status": "open", "max_actions": 6,
			"max_value_usd": 4, "created_at": settled.text("settled_at"), "expires_at": aboutIn(time.Minute)}).exactly(renewed)
		w.wantUsage(before, fields{"action_count": 10, "value_used_usd": 1, "value_held_usd": 4, "value_committed_usd": 1})
		w.post("/v1/leases/"+lease+"/settle", body, access).is(200).exactly(settled.object())
		w.post("/v1/leases/"+lease+"/settle", body.with(fields{"action_count": 5}).without("by_action_type"), access).
			refused(409, "lease_settled")
	})
}
