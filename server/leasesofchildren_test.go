package server_test

import "testing"

func TestLowerLimitsOfLeasesAndActionsReachEveryDescendant(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		p := api.newPlanner(fields{"max_actions": 100, "max_value_usd": 50, "max_lease_seconds": 60})
		below := func(parent string, f fields) string {
			return p.post("/v1/sessions", fields{"agent_id": p.other, "parent_session_id": parent, "max_actions": 20, "max_value_usd": 10}.with(f),
				asKey(p.key)).is(201).text("id")
		}
		child := below(p.session, fields{"max_actions": 50, "max_value_usd": 25, "max_lease_seconds": 60})
		grandchild := below(child, fields{"max_lease_seconds": 60})
		tighter := below(child, fields{"max_lease_seconds": 5, "max_value_usd_per_action": num(0.5)})
		lease := p.lease(grandchild, fields{"max_actions": 2, "max_value_usd": 4}, asKey(p.key)).is(201).text("id")

		p.patch("/v1/sessions/"+p.session, fields{"max_lease_seconds": 20, "max_value_usd_per_action": 1}, asKey(p.key)).is(200)
		for id, want := range map[string]fields{
			child: {"max_lease_seconds": 20, "max_value_usd_per_action": 1}, grandchild: {"max_lease_seconds": 20, "max_value_usd_per_action": 1},
			tighter: {"max_lease_seconds": 5, "max_value_usd_per_action": num(0.5)},
		} {
			p.get("/v1/sessions/"+id, asKey(p.key)).is(200).has(want)
		}
		p.lease(grandchild, fields{"max_actions": 1, "expires_in_seconds": 21}, asKey(p.key)).is(403).has(fields{"limit": "max_lease_seconds"})
		p.post("/v1/sessions/"+grandchild+"/actions", fields{"value_usd": num(1.5)}, asKey(p.key)).is(403).has(fields{"limit": "max_value_usd_per_action"})
		p.post("/v1/leases/"+lease+"/settle", fields{"action_count": 1, "value_used_usd": 1, "renew": fields{"max_actions": 1, "expires_in_seconds": 30}},
			asKey(p.key)).is(200).has(fields{"renewed": nil, "overage_usd": 0}) // what was leased could be spent, and is not leased again for so long
		p.patch("/v1/sessions/"+p.session, fields{"max_lease_seconds": 60, "max_value_usd_per_action": nil}, asKey(p.key)).is(200)
		p.get("/v1/sessions/"+child, asKey(p.key)).is(200).has(fields{"max_lease_seconds": 20, "max_value_usd_per_action": 1})
		p.patch("/v1/sessions/"+child, fields{"max_lease_seconds": 60, "max_value_usd_per_action": nil}, asKey(p.key)).is(200).lacks("max_value_usd_per_action")
	})
}
