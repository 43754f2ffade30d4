package server_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/money"
	"remit/test/suite"
)

// searcher is who asks for more than it has: an API key, an agent by its token, or one that acts in a session with a delegated token.
type searcher struct {
	as      option
	kind    string   // of the credential
	agents  []string // of the token: dead once one of them is revoked; none for an API key
	session string   // of a delegated token, which is dead once this is over
	scopes  []string
	access  string
}

// limitSearch searches for a sequence of requests after which a session, a lease or a token may do more than what is above it. Its limits,
// leases and expiry are the subject here; TestNothingGrowsAndWhatWasRevokedEnds is about tokens and revocation.
type limitSearch struct {
	tenant
	random  *rand.Rand
	key     searcher
	roots   []string
	known   []string
	leases  []string
	agents  []searcher
	tokens  []searcher // delegated
	revoked map[string]bool
	done    map[string]int
}

func newLimitSearch(api *client, seed uint64) *limitSearch {
	g := &limitSearch{tenant: api.newTenant(), random: rand.New(rand.NewPCG(seed, 27)), revoked: map[string]bool{}, done: map[string]int{}}
	g.key = searcher{as: asKey(g.tenant.key), kind: "API key"}
	for range 3 {
		g.newSearcher()
	}
	for range 2 {
		g.newRoot()
	}
	return g
}

func (g *limitSearch) newSearcher() {
	a := g.newAgentWith("pay", "read", "sessions:delegate")
	access := g.exchangeFor(a).access
	g.agents = append(g.agents, searcher{as: asAgent(access), kind: "agent's token", agents: []string{a.id}, scopes: []string{"pay", "read", "sessions:delegate"}, access: access})
}

func (g *limitSearch) newRoot() {
	wanted := fields{"agent_id": pick(g, g.agents).agents[0], "max_actions": 500, "max_value_usd": 500, "max_lease_seconds": 60}
	id := g.post("/v1/sessions", g.some(wanted), g.key.as).is(201).text("id")
	g.roots, g.known = append(g.roots, id), append(g.known, id)
}

func pick[T any](g *limitSearch, from []T) T { return from[g.random.IntN(len(from))] }

// some adds some of the settings that may not grow.
func (g *limitSearch) some(f fields) fields {
	f = f.with(nil)
	for _, of := range []struct {
		name   string
		values []any
	}{
		{"max_lease_seconds", []any{0, 5, 30, 60, 60}}, {"max_value_usd_per_action", []any{1, 2, 5, 5, nil}}, {"expires_in_seconds", []any{500, 3000}},
		{"scopes", []any{list("pay", "sessions:delegate"), list("pay", "read", "sessions:delegate")}},
	} {
		if g.random.IntN(3) == 0 {
			f[of.name] = pick(g, of.values)
		}
	}
	return f
}

// caller draws who asks for something in a session: mostly one that may.
func (g *limitSearch) caller(on searchedSession) searcher {
	all := append(append([]searcher{g.key, g.key}, g.agents...), g.tokens[max(len(g.tokens)-20, 0):]...)
	fits := slices.DeleteFunc(slices.Clone(all), func(by searcher) bool {
		return by.kind != g.key.kind && by.agents[0] != on.Agent || by.session != "" && by.session != on.ID
	})
	if g.random.IntN(4) == 0 {
		return pick(g, all)
	}
	return pick(g, fits)
}

// session draws a session, mostly one that is not over.
func (g *limitSearch) session() searchedSession {
	for {
		i := g.random.IntN(len(g.known))
		is := g.read(g.known[i])
		if is.Status == "active" && (is.Suspended == "" || g.random.IntN(3) == 0) || g.random.IntN(10) == 0 {
			return is
		}
	}
}

// step asks for something at random, and judges the answer.
func (g *limitSearch) step() {
	is := g.session()
	by, on := g.caller(is), is.ID
	switch dice := g.random.IntN(100); {
	case dice < 35:
		g.create(by, is)
	case dice < 55:
		change := g.some(fields{"thresholds": nil}).without("scopes")
		if r := g.judge(by, is, "change", g.patch("/v1/sessions/"+on, change, by.as)); r.status == 200 && by.kind != g.key.kind {
			g.t.Errorf("an %s changed limits: %v", by.kind, change)
		}
	case dice < 74:
		g.takeLease(by, is)
	case dice < 78 && len(g.leases) > 0:
		g.post("/v1/leases/"+pick(g, g.leases)+"/settle", fields{"action_count": 1, "value_used_usd": g.random.IntN(4)}, by.as)
	case dice < 81:
		g.judge(by, is, "charge", g.post("/v1/sessions/"+on+"/actions", fields{"value_usd": g.random.IntN(2)}, by.as))
	case dice < 90:
		if by.kind == g.key.kind {
			by = pick(g, g.agents)
		}
		if r := g.exchangeToken(by.access, on); r.status == 200 {
			g.exchanged(by, is, r)
		}
	case dice < 96:
		g.judge(g.key, is, "suspend", g.post("/v1/sessions/"+on+pick(g, []string{"/suspend", "/resume"}), nil, g.key.as))
	case dice < 98:
		if g.judge(by, is, "end", g.post("/v1/sessions/"+on+"/end", nil, by.as)); slices.Contains(g.roots, on) {
			g.newRoot()
		}
	case g.random.IntN(2) == 0:
		i := g.random.IntN(len(g.agents))
		id := g.agents[i].agents[0]
		g.post("/v1/agents/"+id+"/revoke", nil, g.key.as).is(200)
		g.revoked[id], g.tokens = true, append(g.tokens, g.agents[i])
		g.agents = slices.Delete(g.agents, i, i+1)
		g.newSearcher()
		g.newRoot()
	}
}

func (g *limitSearch) create(by searcher, is searchedSession) {
	wanted := g.some(fields{"agent_id": pick(g, g.agents).agents[0], "parent_session_id": is.ID, "max_actions": 1 + is.MaxActions/int64(4+g.random.IntN(8)),
		"max_value_usd": is.MaxValue / money.MicroUSD(4+g.random.IntN(8))})
	if r := g.judge(by, is, "create", g.post("/v1/sessions", wanted, by.as)); r.status == 201 {
		g.known = append(g.known, r.text("id"))
		var child searchedSession
		r.decode(&child)
		g.check(is, child)
		for _, scope := range child.Scopes {
			if by.kind != g.key.kind && !slices.Contains(by.scopes, scope) {
				g.t.Errorf("a token with %v gave a child %v", by.scopes, child.Scopes)
			}
		}
	}
}

func (g *limitSearch) takeLease(by searcher, is searchedSession) {
	r := g.judge(by, is, "lease", g.post("/v1/sessions/"+is.ID+"/leases", fields{"max_actions": 1, "max_value_usd": g.random.IntN(3),
		"expires_in_seconds": 1 + g.random.IntN(60), "partial": g.random.IntN(4) > 0}, by.as))
	if r.status == 201 {
		g.leases = append(g.leases, r.text("id"))
		var lease struct {
			Created time.Time `json:"created_at"`
			Expires time.Time `json:"expires_at"`
		}
		if r.decode(&lease); lease.Expires.Sub(lease.Created) > time.Duration(is.MaxLease)*time.Second || lease.Expires.After(is.Expires) {
			g.t.Errorf("a lease from %s to %s of a session with %d s until %s", lease.Created, lease.Expires, is.MaxLease, is.Expires)
		}
	}
}

func (g *limitSearch) exchanged(by searcher, is searchedSession, r *response) {
	token := searcher{as: asAgent(r.text("access_token")), kind: "delegated token", agents: append([]string{is.Agent}, by.agents...), session: is.ID,
		access: r.text("access_token")}
	for _, scope := range strings.Fields(r.text("scope")) {
		token.scopes = append(token.scopes, scope)
		if !slices.Contains(by.scopes, scope) || !slices.Contains(is.Scopes, scope) {
			g.t.Errorf("a token for %s came of one with %v and a session with %v", scope, by.scopes, is.Scopes)
		}
	}
	if g.isDead(by) {
		g.t.Errorf("a dead %s was exchanged", by.kind)
	}
	g.tokens, g.done["exchange"] = append(g.tokens, token), g.done["exchange"]+1
}

func (g *limitSearch) read(id string) (is searchedSession) {
	g.get("/v1/sessions/"+id, g.key.as).is(200).decode(&is)
	return is
}

// However an organization, its agents and what they delegate follow on each other, nothing that a caller may do grows on the way down,
// and what was revoked or ended stays so.
func TestNoSequenceOfRequestsLetsAChildGrow(t *testing.T) {
	t.Parallel()
	rounds, steps := 3, 150
	if suite.Long {
		rounds, steps = 6, 200
	}
	var lock sync.Mutex
	done := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for round := range rounds {
			t.Run(strconv.Itoa(round), func(t *testing.T) {
				t.Parallel()
				g := newLimitSearch(onMiniredis(t, setup{}), uint64(round))
				for step := 0; step < steps && !t.Failed(); step++ {
					if g.step(); step%3 == 0 {
						g.checkTrees()
					}
				}
				lock.Lock()
				defer lock.Unlock()
				for what, times := range g.done {
					done[what] += times
				}
			})
		}
	})
	for _, what := range []string{"create by API key", "create by agent's token", "lease by API key", "lease by agent's token", "change by API key", "exchange"} {
		if done[what] == 0 {
			t.Errorf("nothing did this: %s; %v", what, done)
		}
	}
}
