package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestALeaseThatAsksForNonsenseIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	key, id := asKey(w.key), w.leasing(nil)
	lease := w.lease(id, fields{"max_actions": 2, "max_value_usd": 1}, key).is(201).text("id")
	types := func(n int) fields {
		all := fields{}
		for i := range n {
			all[fmt.Sprint("t", i)] = fields{"action_count": 0, "value_usd": 0}
		}
		return all
	}
	wantNothingWritten(t, api, func() {
		for field, bodies := range map[string][]fields{
			"max_actions": {{"expires_in_seconds": 1}, {"expires_in_seconds": 1, "max_actions": 0, "max_value_usd": 0},
				{"expires_in_seconds": 1, "max_actions": -1}, {"expires_in_seconds": 1, "max_actions": 1_000_000_001}},
			"expires_in_seconds": {{"max_actions": 1}, {"max_actions": 1, "expires_in_seconds": 0}, {"max_actions": 1, "expires_in_seconds": 3601}},
		} {
			for _, body := range bodies {
				w.post("/v1/sessions/"+id+"/leases", body, key).invalid(field)
				renew := fields{"action_count": 1, "value_used_usd": 0, "renew": body}
				w.post("/v1/leases/"+lease+"/settle", renew, key).invalid("renew." + field)
			}
		}
		used := fields{"action_count": 2, "value_used_usd": 1}
		for field, bodies := range map[string][]fields{
			"by_action_type": {
				used.with(fields{"by_action_type": fields{}}), used.with(fields{"by_action_type": types(65)}),
				used.with(fields{"by_action_type": fields{"a": fields{"action_count": 2, "value_usd": num("0.999999")}}}),
				used.with(fields{"by_action_type": fields{"a": fields{"action_count": 1, "value_usd": 1}}}),
			},
			"by_action_type.a.action_count": {used.with(fields{"by_action_type": fields{"a": fields{"value_usd": 1}}})},
			"by_action_type.a.value_usd":    {used.with(fields{"by_action_type": fields{"a": fields{"action_count": 2}}})},
			"by_action_type.":               {used.with(fields{"by_action_type": fields{"": fields{"action_count": 2, "value_usd": 1}}})},
		} {
			for _, body := range bodies {
				w.post("/v1/leases/"+lease+"/settle", body, key).invalid(field)
			}
		}
	})
	body := fields{"action_count": 0, "value_used_usd": 0, "by_action_type": types(64)}
	w.post("/v1/leases/"+lease+"/settle", body, key).is(200)
}

func TestARefusedRenewalIsPartOfTheSettlement(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		key := asKey(w.key)
		id := w.leasing(nil)
		before := w.session(id)
		renew := fields{"max_actions": 100, "expires_in_seconds": 10}
		settle := func(lease string, refusal fields) {
			t.Helper()
			body := fields{"action_count": 1, "value_used_usd": 1, "renew": renew}
			w.post("/v1/leases/"+lease+"/settle", body, key).is(200).exactly(fields{"id": lease, "session_id": id, "status": "settled",
				"action_count": 1, "value_used_usd": 1, "overage_usd": 0, "overage_actions": 0, "late": false, "settled_at": aboutNow,
				"renewed": nil, "refusal": refusal})
		}
		first := w.lease(id, fields{"max_actions": 4, "max_value_usd": 2}, key).is(201).text("id")
		second := w.lease(id, fields{"max_actions": 4, "max_value_usd": 2}, key).is(201).text("id")
		refusal := fields{"code": "session_limit_reached", "limit": "max_actions", "detail": "the renewal does not fit into what the session may still do"}
		settle(first, refusal.with(needs(num(100), num(0))))
		renew = fields{"max_actions": 7, "expires_in_seconds": 10}
		settle(first, refusal.with(needs(num(100), num(0)))) // the first answer stands
		w.post("/v1/sessions/"+id+"/end", nil, key).is(200)
		settle(second, fields{"code": "session_not_active", "detail": "the session is no longer active"})
		w.lease(id, fields{"max_actions": 1}, key).refused(403, "session_not_active")
		w.wantUsage(before, fields{"action_count": 2, "value_used_usd": 2, "value_committed_usd": 2, "status": "completed", "ended_at": aboutNow})
	})
}

func TestOverageOfALeaseIsRecorded(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := asAgent(w.exchange().access)
		id := w.leasing(nil)
		before := w.session(id)
		lease := w.lease(id, fields{"max_actions": 4, "max_value_usd": 2}, access).is(201).text("id")
		settled := w.post("/v1/leases/"+lease+"/settle", fields{"action_count": 13, "value_used_usd": num("7.5")}, access).is(200)
		settled.exactly(fields{"id": lease, "session_id": id, "status": "settled", "action_count": 13, "value_used_usd": num("7.5"),
			"overage_usd": num("2.5"), "overage_actions": 3, "late": false, "settled_at": aboutNow, "renewed": nil, "refusal": nil})
		w.wantUsage(before, fields{"action_count": 10, "value_used_usd": 5, "value_committed_usd": 5, "value_overage_usd": num("2.5")})
		events := w.get("/v1/agents/"+w.agent.id+"/events?limit=200", access).is(200)
		for _, part := range []string{`"type":"lease.settled"`, `"overage_actions":3`, `"overage_usd":2.5`, `"limit":"max_value_usd"`} {
			if !strings.Contains(string(events.body), part) {
				t.Errorf("the events lack %s: %s", part, events.body)
			}
		}
	})
}

func TestLeasesAreAllowedForTheNextGrantByPatch(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		key, l := asKey(w.key), w.trail()
		id := w.newSession(fields{"max_actions": 10, "max_value_usd": 5})
		before := w.session(id)
		w.lease(id, fields{"max_actions": 1}, key).refused(403, "session_limit_reached")
		l.unread()
		changed := w.patch("/v1/sessions/"+id, fields{"max_lease_seconds": 30}, key).is(200).exactly(before.with(fields{"max_lease_seconds": 30}))
		l.gains(changed, "api_key", fields{"type": "session.limits_changed", "session_id": id, "data": map[string]any{"max_lease_seconds": num("30")}})
		granted := w.lease(id, fields{"max_actions": 1}, key).is(201)
		granted.exactly(granted.object().with(fields{"expires_at": aboutIn(30 * time.Second)}))
		w.patch("/v1/sessions/"+id, fields{"max_lease_seconds": 0}, key).is(200)
		w.lease(id, fields{"max_actions": 1, "expires_in_seconds": 1, "partial": true}, key).refused(403, "session_limit_reached")
		for _, seconds := range []int{-1, 3601} {
			w.patch("/v1/sessions/"+id, fields{"max_lease_seconds": seconds}, key).invalid("max_lease_seconds")
			w.post("/sessions", fields{"agent_id": w.agent.id, "max_lease_seconds": seconds}, key).invalid("max_lease_seconds")
		}
	})
}
