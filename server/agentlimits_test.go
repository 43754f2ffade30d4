package server_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"
)

func TestAnAgentsLimitsAreSetChangedAndShown(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		limits := func(day, minute, open any) fields {
			return fields{"max_value_usd_per_day": day, "max_actions_per_minute": minute, "max_open_sessions": open}
		}
		created := w.post("/v1/agents", fields{"name": "scout", "scopes": list(), "limits": fields{"max_value_usd_per_day": num("12.5")}}, asKey(w.key)).is(201)
		created.has(fields{"limits": limits(num("12.5"), nil, nil)})
		usage := created.object()["usage"].(map[string]any)
		resets, err := time.Parse(time.RFC3339, fmt.Sprint(usage["resets_at"]))
		if err != nil || usage["value_used_usd_today"] != num("0") || usage["open_sessions"] != nil || resets.Truncate(24*time.Hour) != resets ||
			time.Until(resets) < -time.Minute || time.Until(resets) > 24*time.Hour {
			t.Errorf("usage of a new agent: %v", usage)
		}
		w.agent = agent{created.text("id"), created.text("secret")}
		path, l := "/v1/agents/"+w.agent.id, w.trail()
		changed := w.patch(path, fields{"limits": fields{"max_actions_per_minute": num("60"), "max_open_sessions": num("3"), "max_value_usd_per_day": nil}}, asKey(w.key)).is(200)
		want := fields{"limits": limits(nil, num("60"), num("3")),
			"usage": fields{"value_used_usd_today": nil, "resets_at": nil, "open_sessions": num("0")}}
		changed.has(want)
		l.gains(changed, "api_key", fields{"type": "agent.changed", "data": fields{"changed": list("limits"), "limits": map[string]any(limits(nil, num("60"), num("3")))}})
		w.get(path, asKey(w.key)).is(200).has(want)
		w.newSession(nil)
		w.get(path, asKey(w.key)).is(200).has(fields{"usage": fields{"value_used_usd_today": nil, "resets_at": nil, "open_sessions": num("1")}})
		w.patch(path, fields{"limits": limits(nil, nil, nil)}, asKey(w.key)).is(200).has(unlimited)
	})
}

func TestAnAgentsLimitsRefuseWithWhatAClientNeeds(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		limits := fields{"max_value_usd_per_day": num("5"), "max_actions_per_minute": num("4"), "max_open_sessions": num("1")}
		w.patch("/v1/agents/"+w.agent.id, fields{"limits": limits}, asKey(w.key)).is(200)
		session := w.newSession(nil)
		charge := func(body fields) *response { return w.post("/sessions/"+session+"/actions", body, asKey(w.key)) }
		w.post("/sessions", fields{"agent_id": w.agent.id}, asKey(w.key)).refused(403, "agent_limit_reached").
			has(fields{"limit": "max_open_sessions"})
		charge(fields{"value_usd": num("3")}).is(200)
		charge(fields{"value_usd": num("2.000001")}).refused(403, "agent_limit_reached").
			has(fields{"limit": "max_value_usd_per_day", "resets_at": someText})
		charge(fields{"count": num("5")}).refused(403, "agent_limit_reached").has(fields{"limit": "max_actions_per_minute"})
		fast := charge(fields{"count": num("4")}).refused(429, "rate_limited")
		fast.has(fields{"limit": "max_actions_per_minute"})
		after := fast.header.Get("Retry-After")
		if seconds, err := strconv.Atoi(after); err != nil || seconds < 1 || fast.object()["retry_after_seconds"] != num(after) {
			t.Errorf("Retry-After: %q, %v in the body", after, fast.object()["retry_after_seconds"])
		}
		items := w.post("/v1/actions", batchOf(fields{"session_id": session, "value_usd": num("2")}, fields{"session_id": session, "value_usd": num("1")},
			fields{"session_id": session, "count": num("4")}), asKey(w.key)).is(200).items(3)
		for i, status := range []int{200, 403, 429} {
			wantEqual(t, fmt.Sprintf("the status of item %d", i), items[i].status, status)
		}
		if wait := items[2].body["retry_after_seconds"]; wait == nil || wait == num("0") {
			t.Errorf("an item that is too fast is answered %v, without the time to wait", items[2].body)
		}
		access := asAgent(w.exchange().access)
		w.beginAs(access, fields{"session_id": session, "value_usd": num("3")}).refused(403, "agent_limit_reached")
		w.beginAs(access, fields{"session_id": session, "value_usd": num("3"), "dry_run": true}).refused(403, "agent_limit_reached")
		noted := map[any]int{}
		for _, event := range w.get(w.eventsPath(), asKey(w.key)).is(200).array() {
			if event["type"] == "agent.limit_reached" {
				noted[event["data"].(map[string]any)["limit"]]++
			}
		}
		if !maps.Equal(noted, map[any]int{"max_open_sessions": 1, "max_value_usd_per_day": 1, "max_actions_per_minute": 1}) {
			t.Errorf("the events name %v", noted)
		}
		w.wantMetrics(
			`remit_charges_total{outcome="max_value_usd_per_day"} 2`, `remit_charges_total{outcome="max_actions_per_minute"} 3`,
			`remit_agent_limit_refusals_total{limit="max_value_usd_per_day"} 3`,
			`remit_agent_limit_refusals_total{limit="max_actions_per_minute"} 3`,
			`remit_agent_limit_refusals_total{limit="max_open_sessions"} 1`,
		)
	})
}

func TestWrongLimitsOfAnAgentAreRefusedByName(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		refused := func(limits any, field string) {
			w.post("/v1/agents", fields{"name": "scout", "scopes": list(), "limits": limits}, asKey(w.key)).invalid(field)
			w.patch("/v1/agents/"+w.agent.id, fields{"limits": limits}, asKey(w.key)).invalid(field)
		}
		for field, values := range map[string][]any{
			"max_value_usd_per_day":  {num("-1"), num("0.0000001"), "5"},
			"max_actions_per_minute": {num("0"), num("1000001"), num("1.5")},
			"max_open_sessions":      {num("-1"), num("1000001")},
			"max_value":              {num("1")},
		} {
			for _, value := range values {
				refused(fields{field: value}, "limits."+field)
			}
		}
		refused(nil, "limits")
		refused(list(), "limits")
		w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).has(unlimited)
		w.patch("/v1/agents/"+w.agent.id, fields{"limits": fields{}}, asKey(w.key)).is(400)
		w.post("/sessions", fields{"agent_id": w.agent.id, "max_value_usd_per_action": num("-1")}, asKey(w.key)).invalid("max_value_usd_per_action")
	})
}
