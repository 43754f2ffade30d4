package server_test

import (
	"encoding/json"
	"slices"
	"strings"

	"remit/test/prover"
)

// growthSteps are what the search does. What a step asks for is often more than it may get.
var growthSteps = []growthStep{
	{"issue a token", 3, func(g *growth) { g.issue(recent(g, g.agents)) }},
	{"create a root session", 1, func(g *growth) { g.newRoot(recent(g, g.agents)) }},
	{"create a child", 10, (*growth).newChild},
	{"exchange a token", 14, (*growth).delegate},
	{"change limits", 5, (*growth).changeLimits},
	{"take a lease", 6, (*growth).takeLease},
	{"create a session key", 4, (*growth).newSessionKey},
	{"delete a session key", 1, (*growth).deleteSessionKey},
	{"revoke by family", 1, func(g *growth) {
		k := recent(g, g.tokens)
		path := "/v1/agents/" + k.of.id + "/families/" + pair{k.text, ""}.family()
		g.delete(path, asKey(g.key)).is(200)
		k.revoked = true
		g.done["revocation"]++
	}},
	{"revoke all tokens", 1, func(g *growth) {
		a := recent(g, g.agents)
		if a.revoked {
			return
		}
		a.secret = g.post("/v1/agents/"+a.id+"/secret/rotate", fields{"revoke_families": true}, asKey(g.key)).is(200).text("secret")
		for _, k := range g.tokens {
			k.revoked = k.revoked || k.of == a
		}
		for _, k := range g.sessionKeys {
			k.revoked = k.revoked || k.session.of == a
		}
		g.done["revocation"]++
	}},
	{"revoke an agent", 1, func(g *growth) {
		a := recent(g, g.agents)
		if g.random.IntN(3) > 0 || a.revoked {
			return
		}
		g.post("/v1/agents/"+a.id+"/revoke", nil, asKey(g.key)).is(200)
		a.revoked = true
		g.issue(g.newGrownAgent())
	}},
	{"suspend or resume an agent", 2, func(g *growth) { // what is suspended soon resumes
		if a := firstOr(g, g.agents, func(a *grownAgent) bool { return a.suspended && !a.revoked }); !a.revoked {
			g.post("/v1/agents/"+a.id+suspendOrResume[a.suspended], nil, asKey(g.key)).is(200)
			a.suspended = !a.suspended
		}
	}},
	{"suspend or resume a session", 2, func(g *growth) {
		s := firstOr(g, g.sessions, func(s *grownSession) bool { return s.suspended && !s.over() && !s.of.revoked })
		if s.over() || s.of.revoked || s.parent.halted() {
			return
		}
		g.post("/v1/sessions/"+s.id+suspendOrResume[s.suspended], nil, asKey(g.key)).is(200)
		s.suspended = !s.suspended
		for _, below := range g.sessions { // what was suspended below resumes with it
			below.suspended = below.suspended && (s.suspended || !below.isBelow(s))
		}
	}},
	{"end a session", 1, func(g *growth) {
		s := recent(g, g.sessions)
		if g.post("/v1/sessions/"+s.id+"/end", nil, asKey(g.key)).status == 200 {
			s.ended = true
		}
	}},
	{"change an agent's scopes", 2, func(g *growth) {
		a, scopes := firstOr(g, g.agents, func(a *grownAgent) bool { return !a.revoked && len(a.scopes) < len(growthScopes) }), growthScopes
		if a.revoked {
			return
		}
		if len(a.scopes) == len(growthScopes) { // others soon get theirs back
			scopes = g.someOf(growthScopes)
		}
		g.patch("/v1/agents/"+a.id, fields{"scopes": scopes}, asKey(g.key)).is(200)
		a.scopes = scopes
		g.note("of %s to %q", a.id, scopes)
	}},
}

var suspendOrResume = map[bool]string{false: "/suspend", true: "/resume"}

// firstOr returns the first for which this holds, any if there is none.
func firstOr[T any](g *growth, from []T, holds func(T) bool) T {
	if at := slices.IndexFunc(from, holds); at >= 0 {
		return from[at]
	}
	return recent(g, from)
}

// anyProof returns one of the keys with its proof for the token endpoint; none as often.
func (g *growth) anyProof() (*prover.Key, []option) {
	at := g.random.IntN(2 * len(g.keys))
	if at >= len(g.keys) {
		return nil, nil
	}
	return g.keys[at], g.proofOf(g.keys[at])
}

func (g *growth) proofOf(key *prover.Key) []option {
	return []option{holder{g.tenant, key}.at("/oauth2/token")}
}

// wishes are some audiences, or none, and some of the scopes, or all that there are.
func (g *growth) wishes(scopes []string) (pairs []string) {
	if g.random.IntN(3) > 0 {
		for _, audience := range g.someOf(growthAudiences) {
			pairs = append(pairs, "resource", audience)
		}
	}
	if some := g.someOf(scopes); len(some) > 0 && g.random.IntN(3) == 0 {
		pairs = append(pairs, "scope", strings.Join(some, " "))
	}
	return pairs
}

// issue gets a token of an agent by its own credentials: these may give all that the agent may.
func (g *growth) issue(a *grownAgent) {
	key, options := g.anyProof()
	more := g.wishes(a.scopes)
	body := byPost(a.agent, append(more, "grant_type", "client_credentials")...)
	if a.workload && g.random.IntN(2) == 0 {
		body = byAssertion(a.id, g.job.sign(object{"sub": "job"}), more...)
	}
	r := g.postForm("/oauth2/token", body, options...)
	if (r.status == 200) != (!a.revoked && !a.suspended) {
		g.t.Errorf("a token of an agent, revoked %t, suspended %t: %d %s", a.revoked, a.suspended, r.status, r.body)
	}
	if r.status != 200 {
		return
	}
	if k := g.read(&grownToken{text: r.text("access_token"), of: a, key: key}); !within(k.scopes, a.scopes) {
		g.t.Errorf("%s has more than its agent's %q", k, a.scopes)
	}
	g.done["root token"]++
}

func (g *growth) newRoot(a *grownAgent) {
	if a.revoked || a.suspended {
		return
	}
	wanted := g.withLimits(fields{"agent_id": a.id, "max_actions": 1000, "max_value_usd": 1000, "max_lease_seconds": 60})
	if g.random.IntN(4) == 0 {
		wanted["scopes"] = g.someOf(a.scopes)
	}
	r := g.post("/v1/sessions", wanted, asKey(g.key)).is(201)
	g.sessions = append(g.sessions, &grownSession{id: r.text("id"), of: a, settings: r.object()})
}

// newChild creates a child of a session by the API key or by a token, for any agent. Its settings are beyond the
// parent's now and then.
func (g *growth) newChild() {
	by, of := g.giver(), mostly(g, g.agents, func(a *grownAgent) bool { return !a.revoked && !a.suspended })
	parent := g.sessionWhere(by.reaches)
	most := int(number(parent.settings, "max_actions"))
	wanted := g.withLimits(fields{"agent_id": of.id, "parent_session_id": parent.id,
		"max_actions": 1 + g.random.IntN(most/2+2), "max_value_usd": g.random.IntN(most/2 + 2)})
	if g.random.IntN(4) == 0 {
		wanted["scopes"] = g.someOf(growthScopes)
	}
	as := g.as(by, "POST", "/v1/sessions")
	if g.random.IntN(5) == 0 {
		by, as = nil, asKey(g.key)
	}
	r := g.post("/v1/sessions", wanted, as)
	if r.status != 201 {
		return
	}
	child := &grownSession{id: r.text("id"), of: of, parent: parent, settings: r.object()}
	g.note("%s of %s", child.id, parent.id)
	if by != nil && !(by.mayDelegate() && by.reaches(parent)) || parent.over() || parent.halted() || of.revoked || of.suspended {
		g.t.Errorf("%v creates a child of %s for %s", by, parent.id, of.id)
	}
	g.checkLimits(g.searched(parent.id), g.searched(child.id))
	if own := heldScopes(child.settings); !within(own, heldScopes(g.session(parent.id))) || by != nil && !within(own, by.left()) {
		g.t.Errorf("%v gives a child of %s the scopes %v", by, parent.id, own)
	}
	g.sessions = append(g.sessions, child)
	g.done["child"]++
	if by != nil {
		g.done["child by a token"]++
	}
}

func number(of fields, name string) float64 {
	value, _ := of[name].(json.Number).Float64()
	return value
}

func heldScopes(session fields) (scopes []string) {
	for _, scope := range session["scopes"].([]any) {
		scopes = append(scopes, scope.(string))
	}
	return scopes
}

// chains are delegated tokens that may be exchanged again, each with a session that it may be exchanged for; in no token is the rest set.
func (g *growth) chains() (found []grownToken) {
	for _, k := range g.tokens {
		for _, s := range g.sessions {
			if k.session != nil && k.mayDelegate() && s.parent == k.session && !s.over() && !s.of.revoked {
				found = append(found, grownToken{subject: k, session: s})
			}
		}
	}
	return found
}

// delegate asks for a token for a session by another token, often for more than that one has.
func (g *growth) delegate() {
	subject := g.giver()
	session := g.sessionWhere(func(s *grownSession) bool { return s.parent != nil && subject.reaches(s.parent) })
	if chained := g.chains(); len(chained) > 0 && g.random.IntN(2) == 0 {
		pick := pickOf(g, chained)
		subject, session = pick.subject, pick.session
	}
	key, options := g.anyProof()
	if subject.key != nil && g.random.IntN(4) > 0 {
		key, options = subject.key, g.proofOf(subject.key)
	}
	more := g.wishes(growthScopes)
	r := g.postForm("/oauth2/token", form(append([]string{"grant_type", exchangeGrant, "subject_token", subject.text,
		"subject_token_type", accessTokenType, "session_id", session.id}, more...)...), options...)
	if r.status != 200 {
		return
	}
	if !subject.mayDelegate() || session.parent == nil || !subject.reaches(session.parent) || session.over() || session.halted() || session.of.revoked || session.of.suspended {
		g.t.Errorf("%s is exchanged for session %s", subject, session.id)
	}
	k := g.read(&grownToken{text: r.text("access_token"), of: session.of, key: key, session: session, subject: subject})
	g.note("%s", k)
	switch {
	case !within(k.scopes, subject.left()), !within(k.scopes, session.of.scopes), !within(k.scopes, heldScopes(session.settings)):
		g.t.Errorf("the scopes grow: %s from %s", k, subject)
	case !within(k.audience, subject.audience):
		g.t.Errorf("the audience grows: %s from %s", k, subject)
	case k.expires.After(subject.expires):
		g.t.Errorf("the life grows: %s until %s from %s until %s", k, k.expires, subject, subject.expires)
	case subject.key != nil && k.key != subject.key:
		g.t.Errorf("the key is lost: %s from %s", k, subject)
	}
	g.done["exchange"]++
	if subject.subject != nil {
		g.done["chained exchange"]++
	}
}
