package server_test

import "slices"

// grownKey is a session key of the search of growthsearch_test.go.
type grownKey struct {
	id, text string
	session  *grownSession
	revoked  bool
}

func (k *grownKey) dead() bool { return k.revoked || k.session.of.revoked }

func (g *growth) newSessionKey() {
	s := g.sessionWhere(func(*grownSession) bool { return true })
	r := g.post("/v1/sessions/"+s.id+"/keys", nil, asKey(g.key))
	if r.status != 201 {
		return
	}
	if s.over() || s.of.revoked {
		g.t.Errorf("a key of session %s, over %t, of an agent, revoked %t", s.id, s.over(), s.of.revoked)
	}
	g.sessionKeys = append(g.sessionKeys, &grownKey{id: r.text("id"), text: r.text("key"), session: s})
}

func (g *growth) deleteSessionKey() {
	if len(g.sessionKeys) == 0 {
		return
	}
	k := recent(g, g.sessionKeys)
	if g.delete("/v1/sessions/"+k.session.id+"/keys/"+k.id, asKey(g.key)).status == 204 {
		k.revoked = true
	}
}

// checkSessionKey charges a session by a key, and asks for more than keys give.
func (g *growth) checkSessionKey() {
	if len(g.sessionKeys) == 0 {
		return
	}
	k, s, scope := recent(g, g.sessionKeys), recent(g, g.sessions), pickOf(g, growthScopes)
	if g.random.IntN(2) == 0 {
		s = k.session
	}
	may := !k.dead() && k.session == s && !s.of.suspended && !s.over() && !s.halted() &&
		slices.Contains(s.of.scopes, scope) && slices.Contains(heldScopes(g.session(s.id)), scope)
	r := g.post("/v1/sessions/"+s.id+"/actions", fields{"scope": scope}, asAgent(k.text))
	switch {
	case r.status == 200 && !may, k.dead() && r.status != 401:
		g.t.Errorf("a key of session %s, dead %t, charges session %s with the scope %s: %d %s", k.session.id, k.dead(), s.id, scope, r.status, r.body)
	case r.status == 200:
		g.done["charge by a session key"]++
	}
	child := fields{"agent_id": s.of.id, "parent_session_id": k.session.id, "max_actions": 1, "max_value_usd": 0}
	if r := g.post("/v1/sessions", child, asAgent(k.text)); r.status == 201 {
		g.t.Errorf("a session key creates a child: %s", r.body)
	}
	if r := g.exchangeToken(k.text, s.id); r.status == 200 {
		g.t.Errorf("a session key is exchanged: %s", r.body)
	}
}
