package server_test

import "testing"

// With sessions:delegate alone an agent may not give itself leases, which outlive a revocation and bypass
// max_value_usd_per_action.
func TestAnAgentGivesItsChildrenNoLongerLeasesThanItHas(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for _, own := range []int{0, 30} {
			p := api.newPlanner(fields{"max_actions": 10, "max_value_usd": 5, "max_lease_seconds": own, "max_value_usd_per_action": 1})
			token := asAgent(p.token.access)
			for _, as := range []option{token, asKey(p.key)} {
				p.post("/v1/sessions", fields{"agent_id": p.agent.id, "parent_session_id": p.session, "max_actions": 10, "max_value_usd": 5,
					"max_lease_seconds": own + 1}, as).is(403).has(fields{"code": "session_limit_reached", "limit": "max_lease_seconds",
					"parent_session_id": p.session, "remaining_value_usd": 5})
			}
			p.get("/v1/sessions/"+p.session, asKey(p.key)).is(200).lacks("value_delegated_usd")
			child := p.create(fields{"max_actions": 5, "max_value_usd": 2}, token).is(201).has(fields{"max_lease_seconds": 0}).text("id")
			equal := p.create(fields{"max_actions": 5, "max_value_usd": 2, "max_lease_seconds": own}, token).is(201)
			equal.has(fields{"max_lease_seconds": own, "max_value_usd_per_action": 1})
			p.lease(child, fields{"max_actions": 1}, asKey(p.key)).is(403).has(fields{"limit": "max_lease_seconds"})
		}
	})
}

func TestAChildIsNotChangedBeyondItsParent(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		p := api.newPlanner(fields{"max_actions": 10, "max_value_usd": 5, "max_lease_seconds": 30, "max_value_usd_per_action": 1})
		child := "/v1/sessions/" + p.create(fields{"max_actions": 5, "max_value_usd": 2, "max_lease_seconds": 10,
			"max_value_usd_per_action": num(0.5)}, asKey(p.key)).is(201).text("id")
		grandchild := "/v1/sessions/" + p.post("/v1/sessions", fields{"agent_id": p.other, "parent_session_id": child[len("/v1/sessions/"):],
			"max_actions": 1, "max_value_usd": 1}, asKey(p.key)).is(201).has(fields{"max_value_usd_per_action": num(0.5)}).text("id")
		before := p.get(child, asKey(p.key)).is(200).object()
		for _, row := range []struct {
			session string
			change  fields
			limit   string
		}{
			{child, fields{"max_lease_seconds": 31}, "max_lease_seconds"},
			{child, fields{"max_lease_seconds": 31, "max_value_usd": 3}, "max_lease_seconds"},
			{child, fields{"max_lease_seconds": 31, "expires_in_seconds": 1}, "max_lease_seconds"},
			{grandchild, fields{"max_lease_seconds": 11}, "max_lease_seconds"},
			{child, fields{"max_value_usd_per_action": num(1.000001)}, "max_value_usd_per_action"},
			{child, fields{"max_value_usd_per_action": nil}, "max_value_usd_per_action"},
			{grandchild, fields{"max_value_usd_per_action": num(0.500001), "add_actions": 1}, "max_value_usd_per_action"},
		} {
			p.patch(row.session, row.change, asKey(p.key)).is(403).has(fields{"code": "session_limit_reached", "limit": row.limit})
		}
		p.get(child, asKey(p.key)).is(200).exactly(before)
		p.get("/v1/sessions/"+p.session, asKey(p.key)).is(200).has(fields{"value_delegated_usd": 2, "actions_delegated": 5})
		p.patch(child, fields{"max_lease_seconds": 30, "max_value_usd_per_action": 1}, asKey(p.key)).is(200).
			has(fields{"max_lease_seconds": 30, "max_value_usd_per_action": 1})
		p.get(grandchild, asKey(p.key)).is(200).has(fields{"max_lease_seconds": 0, "max_value_usd_per_action": num(0.5)})
		p.patch(child, fields{"max_lease_seconds": 0, "max_value_usd_per_action": num(0.25), "add_value_usd": 1}, asKey(p.key)).is(200).
			has(fields{"max_lease_seconds": 0, "max_value_usd_per_action": num(0.25), "max_value_usd": 3})
		p.get(grandchild, asKey(p.key)).is(200).has(fields{"max_value_usd_per_action": num(0.25)})
	})
}

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
