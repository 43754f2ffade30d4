package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"remit/test/prover"
	"remit/test/suite"
)

// growth is a search for authority that grows on the way down, or outlives its revocation. Random callers create child sessions, change
// limits, take leases, exchange tokens and take authority away; a model in the terms of the documentation says what each token may do at the most.
type growth struct {
	tenant
	random      *rand.Rand
	log         []string
	agents      []*grownAgent
	sessions    []*grownSession
	tokens      []*grownToken
	sessionKeys []*grownKey
	job         *foreignIssuer // a platform that the organization trusts for the first agents
	keys        []*prover.Key
	done        map[string]int // what succeeded, by kind
}

// growthStep is a random operation. Its own checks compare what it was given with what gave it.
type growthStep struct {
	name   string
	weight int
	do     func(g *growth)
}

var growthScopes = []string{"pay", "read", "sessions:delegate"}

var growthAudiences = []string{issuer, mail, wiki}

func TestNothingGrowsAndWhatWasRevokedEnds(t *testing.T) {
	t.Parallel()
	rounds, steps := uint64(5), 150
	if suite.Long && !suite.RaceDetector { // miniredis is ten times as slow with it
		rounds, steps = 14, 200
	}
	done := make([]map[string]int, rounds)
	t.Run("rounds", func(t *testing.T) {
		for seed := range rounds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				g := newGrowth(t, seed)
				for step := range steps {
					g.step()
					if g.checkSome(); step%3 == 0 {
						g.checkTrees()
					}
					if t.Failed() {
						t.Fatalf("after\n%s", strings.Join(g.log, "\n"))
					}
				}
				done[seed] = g.done
			})
		}
	})
	total := map[string]int{}
	for _, round := range done {
		for kind, times := range round {
			total[kind] += times
		}
	}
	for _, kind := range grownKinds {
		if total[kind] == 0 {
			t.Errorf("no %s in %d rounds: the search proves nothing", kind, rounds)
		}
	}
}

// grownKinds are what the search is to do at least once.
var grownKinds = []string{"root token", "child", "child by a token", "exchange", "chained exchange", "revocation",
	"live", "dead", "charge", "charge by a session key", "change", "lease"}

func newGrowth(t *testing.T, seed uint64) *growth {
	t.Helper()
	g := &growth{
		tenant: onMiniredis(t, setup{}).newTenant(), random: rand.New(rand.NewPCG(seed, 27)), done: map[string]int{},
		job: newForeignIssuer(t, "https://idp.example", "EdDSA"), keys: []*prover.Key{prover.New("EdDSA"), prover.New("ES256")},
	}
	var rules []any
	for range 4 {
		a := g.newGrownAgent()
		a.workload = true
		rules = append(rules, issuerRule(a.id, object{"sub": "job"}))
	}
	g.post(issuersPath, fields{"issuer": g.job.name, "jwks": object{"keys": []any{g.job.publicKey()}}, "rules": rules}, asKey(g.key)).is(201)
	for _, a := range g.agents {
		g.newRoot(a)
		g.issue(a)
	}
	return g
}

func (g *growth) newGrownAgent() *grownAgent {
	a := &grownAgent{agent: g.newAgentWith(growthScopes...), scopes: growthScopes}
	g.agents = append(g.agents, a)
	return a
}

// step does one of the steps, by their weights.
func (g *growth) step() {
	total := 0
	for _, s := range growthSteps {
		total += s.weight
	}
	at := g.random.IntN(total)
	for _, s := range growthSteps {
		if at -= s.weight; at < 0 {
			g.log = append(g.log, s.name)
			s.do(g)
			return
		}
	}
}

// note says what a step did, for the log of a failure.
func (g *growth) note(format string, values ...any) {
	g.log[len(g.log)-1] += " " + fmt.Sprintf(format, values...)
}

func pickOf[T any](g *growth, from []T) T { return from[g.random.IntN(len(from))] }

// someOf returns a random part of a list, in its order.
func (g *growth) someOf(from []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(string) bool { return g.random.IntN(3) == 0 })
}

// recent prefers what was made lately: old things have mostly ended.
func recent[T any](g *growth, from []T) T {
	if len(from) > 12 && g.random.IntN(4) > 0 {
		from = from[len(from)-12:]
	}
	return pickOf(g, from)
}

// mostly returns one that is good, most of the time.
func mostly[T any](g *growth, from []T, good func(T) bool) T {
	may := slices.DeleteFunc(slices.Clone(from), func(one T) bool { return !good(one) })
	if len(may) > 0 && g.random.IntN(4) > 0 {
		return recent(g, may)
	}
	return recent(g, from)
}

// giver returns a token, mostly one that may delegate, and often a delegated one.
func (g *growth) giver() *grownToken {
	delegated := g.random.IntN(2) == 0
	return mostly(g, g.tokens, func(k *grownToken) bool { return k.mayDelegate() && (!delegated || k.subject != nil) })
}

// sessionWhere returns a session, mostly one that is open and for which this holds.
func (g *growth) sessionWhere(good func(*grownSession) bool) *grownSession {
	return mostly(g, g.sessions, func(s *grownSession) bool { return !s.over() && !s.halted() && good(s) })
}

// as presents a token, with a proof if it is bound to a key.
func (g *growth) as(k *grownToken, method, path string) option {
	if k.key == nil {
		return asAgent(k.text)
	}
	return holder{g.tenant, k.key}.proven(k.text, method, path)
}

// charge charges a session by a token.
func (g *growth) charge(k *grownToken, s *grownSession, scope string) *response {
	path := "/v1/sessions/" + s.id + "/actions"
	return g.post(path, fields{"scope": scope}, g.as(k, "POST", path))
}

// checkSome holds a few tokens against the model, the last ones among them.
func (g *growth) checkSome() {
	for range 3 {
		g.checkToken(recent(g, g.tokens))
	}
	g.checkSessionKey()
	k, s, scope := recent(g, g.tokens), recent(g, g.sessions), pickOf(g, growthScopes)
	may := k.alive() && slices.Contains(k.audience, issuer) && k.reaches(s) && !s.over() && !s.halted() && slices.Contains(k.left(), scope)
	if r := g.charge(k, s, scope); r.status == 200 && !may {
		g.t.Errorf("%s charges session %s with the scope %s", k, s.id, scope)
	} else if r.status == 200 {
		g.done["charge"]++
	}
}

// checkToken verifies a token for an audience, and compares who it is said to be.
func (g *growth) checkToken(k *grownToken) {
	audience := pickOf(g, growthAudiences)
	path := "/v1/auth/verify"
	r := g.get(path+"?audience="+audience, g.as(k, "GET", path))
	may := k.alive() && slices.Contains(k.audience, audience)
	switch {
	case may != (r.status == 200):
		g.t.Errorf("%s for %s: %d %s", k, audience, r.status, r.body)
	case may && (r.header.Get("X-Agent-Id") != k.of.id || r.header.Get("X-Scopes") != strings.Join(k.left(), " ")):
		g.t.Errorf("%s: scopes %q, want %q", k, r.header.Get("X-Scopes"), k.left())
	case may:
		g.done["live"]++
	case !k.alive():
		g.done["dead"]++
	}
}

// read fills in what a new token says of itself.
func (g *growth) read(k *grownToken) *grownToken {
	_, claims := verify(g.t, g.client, k.text)
	texts := func(claim any) (all []string) {
		if one, is := claim.(string); is {
			return []string{one}
		}
		for _, one := range claim.([]any) {
			all = append(all, one.(string))
		}
		return all
	}
	seconds, _ := claims["exp"].(json.Number).Int64()
	k.expires, k.scopes, k.audience = time.Unix(seconds, 0), texts(claims["scopes"]), texts(claims["aud"])
	want := ""
	if k.key != nil {
		want = k.key.Thumbprint()
	}
	g.boundTo(k.text, want)
	g.tokens = append(g.tokens, k)
	return k
}
