package server_test

import (
	"testing"
	"time"
)

// planner is a tenant whose agent may delegate, with a session and an access token, and another agent.
type planner struct {
	tenant
	session string
	token   pair
	other   string
}

func (c *client) newPlanner(limits fields) planner {
	w := c.newTenant()
	w.agent = w.newAgentWith("read", "sessions:delegate")
	return planner{tenant: w, token: w.exchange(), session: w.newSession(limits), other: w.newAgentWith("read", "web").id}
}

func planning(limits fields) func(*client) planner {
	return func(c *client) planner { return c.newPlanner(limits) }
}

func (p planner) create(f fields, as option) *response {
	f["agent_id"], f["parent_session_id"] = p.other, p.session
	return p.post("/v1/sessions", f, as)
}

// What comes back when they end, redisstore shows.
func TestAnAgentGivesPartsOfItsSessionToOthers(t *testing.T) {
	onEach(t, planning(fields{"max_actions": 10, "max_value_usd": 5}), func(t *testing.T, p planner) {
		child := p.create(fields{"max_actions": 4, "max_value_usd": 2}, asAgent(p.token.access)).is(201)
		child.has(fields{"parent_session_id": p.session, "agent_id": p.other, "scopes": list("read"), "max_actions": 4})
		own := p.get("/v1/sessions/"+p.session, asKey(p.key)).is(200)
		own.has(fields{"actions_delegated": 4, "value_delegated_usd": 2, "action_count": 0, "value_used_usd": 0})
		if child.text("expires_at") > own.text("expires_at") {
			t.Errorf("the child expires at %s, its parent at %s", child.text("expires_at"), own.text("expires_at"))
		}
		p.post("/v1/sessions/"+child.text("id")+"/actions", fields{"value_usd": 0.5}, asKey(p.key)).is(200)
		p.post("/v1/sessions/"+p.session+"/actions", fields{"value_usd": 3.5}, asKey(p.key)).is(403).has(fields{
			"code": "session_limit_reached", "limit": "max_value_usd", "remaining_value_usd": 3, "remaining_actions": 6})
		p.get("/v1/sessions/"+p.session+"/tree", asAgent(p.token.access)).is(200).has(fields{"id": p.session})
	})
}

// What a child asks for beyond its parent, and strangers' agents and parents, are in TestNoFieldOfAChildGrowsBeyondItsParent.
func TestAChildNeedsItsParentsAgentOrKey(t *testing.T) {
	onEach(t, planning(fields{"max_actions": 10, "max_value_usd": 5}), func(t *testing.T, p planner) {
		asks := fields{"agent_id": p.other, "parent_session_id": p.session, "max_actions": 1, "max_value_usd": 1}
		plain := p.newTenant()
		plain.post("/v1/sessions", asks, asAgent(plain.exchange().access)).refused(403, "insufficient_scope").
			has(fields{"required_scope": "sessions:delegate"})
		p.post("/v1/sessions", fields{"agent_id": p.agent.id}, asAgent(p.token.access)).refused(401, "missing_credentials")
		p.get("/v1/sessions/"+p.session, asKey(p.key)).is(200).lacks("value_delegated_usd")
		p.post("/v1/sessions/"+p.session+"/end", nil, asKey(p.key)).is(200)
		p.create(asks, asKey(p.key)).refused(403, "session_not_active").has(fields{"session_status": "completed"})
	})
}

func TestAnOrganizationHasABudget(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		w.get("/v1/budget", asKey(w.key)).is(404)
		w.delete("/v1/budget", asKey(w.key)).is(404)
		set := w.put("/v1/budget", fields{"max_value_usd": 10, "period": "month"}, asKey(w.key)).is(200)
		set.has(fields{"max_value_usd": 10, "period": "month", "value_reserved_usd": 0, "value_used_usd": 0, "remaining_usd": 10})
		now := time.Now().UTC()
		month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		set.has(fields{"period_started_at": stamp(month), "resets_at": stamp(month.AddDate(0, 1, 0))})
		session := w.post("/v1/sessions", fields{"agent_id": w.agent.id, "max_value_usd": 7}, asKey(w.key)).is(201).text("id")
		w.post("/v1/sessions", fields{"agent_id": w.agent.id, "max_actions": 6, "max_value_usd": 4}, asKey(w.key)).refused(403, "budget_exhausted").
			has(fields{"remaining_usd": 3, "resets_at": stamp(month.AddDate(0, 1, 0))}.with(needs(6, 4)))
		path := "/v1/sessions/" + session
		w.patch(path, fields{"add_actions": 2, "add_value_usd": 4}, asKey(w.key)).refused(403, "budget_exhausted").has(needs(2, 4))
		w.patch(path, fields{"max_value_usd": 12}, asKey(w.key)).refused(403, "budget_exhausted").has(needs(0, 5))
		w.put("/v1/budget", fields{"max_value_usd": 6.5, "period": "day"}, asKey(w.key)).is(409).has(fields{"code": "limit_below_usage"})
		w.post("/v1/sessions/"+session+"/actions", fields{"value_usd": 2}, asKey(w.key)).is(200)
		w.post("/v1/sessions/"+session+"/end", nil, asKey(w.key)).is(200)
		w.get("/v1/budget", asKey(w.key)).is(200).has(fields{"value_reserved_usd": 0, "value_used_usd": 2, "remaining_usd": 8})
		w.put("/v1/budget", fields{"max_value_usd": 2, "period": "none"}, asKey(w.key)).is(200).has(fields{"resets_at": nil, "period_started_at": nil})
		w.delete("/v1/budget", asKey(w.key)).is(204)
		w.get("/v1/budget", asKey(w.key)).is(404)
	})
}

// stamp is a time as responses show it.
func stamp(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }

func TestANarrowTokenGivesAChildNoScopeThatItLacks(t *testing.T) {
	onEach(t, planning(fields{"max_actions": 10, "max_value_usd": 5}), func(t *testing.T, p planner) {
		narrow := p.postForm("/oauth2/token", form("grant_type", "client_credentials", "client_id", p.agent.id, "client_secret", p.agent.secret,
			"scope", "sessions:delegate")).is(200).text("access_token")
		own := fields{"agent_id": p.agent.id, "parent_session_id": p.session, "max_actions": 1, "max_value_usd": 1}
		p.post("/v1/sessions", own.with(fields{"scopes": list("read")}), asAgent(narrow)).is(403).has(fields{
			"code": "insufficient_scope", "required_scope": "read"})
		p.post("/v1/sessions", own, asAgent(narrow)).is(201).has(fields{"scopes": list("sessions:delegate")})
		p.post("/v1/sessions", own, asAgent(p.token.access)).is(201).has(fields{"scopes": list("read", "sessions:delegate")})
		p.create(fields{"max_actions": 1, "max_value_usd": 1}, asAgent(narrow)).is(201).has(fields{"scopes": list()})
	})
}
