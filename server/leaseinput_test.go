package server_test

import (
	"fmt"
	"testing"
)

func TestALeaseThatAsksForNonsenseIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	key, id := asKey(w.key), w.leasing(nil)
	lease := w.lease(id, fields{"max_actions": 2, "max_value_usd": 1}, key).is(201).text("id")
	types := func(n int) fields {
		all := fields{}
		for i := range n {
			all[fmt.Sprint("t", i)] = fields{"action_count": 0, "value_usd": 0}
		}
		return all
	}
	wantNothingWritten(t, w.client, func() {
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
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		key := asKey(w.key)
		id := w.leasing(nil)
		settle := func(lease string, renewed int, want fields) {
			t.Helper()
			body := fields{"action_count": 8, "value_used_usd": num("3.5"), "renew": fields{"max_actions": renewed, "expires_in_seconds": 10}}
			w.post("/v1/leases/"+lease+"/settle", body, key).is(200).exactly(fields{"id": lease, "session_id": id, "status": "settled",
				"action_count": 8, "value_used_usd": num("3.5"), "late": false, "settled_at": aboutNow, "renewed": nil}.with(want))
		}
		first := w.lease(id, fields{"max_actions": 4, "max_value_usd": 2}, key).is(201).text("id")
		second := w.lease(id, fields{"max_actions": 2, "max_value_usd": 1}, key).is(201).text("id")
		refused := fields{"overage_usd": 0, "overage_actions": 0, "refusal": fields{"code": "session_limit_reached", "limit": "max_actions",
			"detail": "the renewal does not fit into what the session may still do"}.with(needs(num(100), num(0)))}
		settle(first, 100, refused)
		settle(first, 7, refused) // the first answer stands
		w.post("/v1/sessions/"+id+"/end", nil, key).is(200)
		settle(second, 1, fields{"overage_usd": num("2.5"), "overage_actions": 6,
			"refusal": fields{"code": "session_not_active", "detail": "the session is no longer active"}})
	})
}
