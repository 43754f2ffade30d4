package server_test

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"remit/internal/token"
	"remit/server/internal/access"
	"remit/test/prover"
)

// holder is a client that binds its tokens to a key.
type holder struct {
	tenant
	key *prover.Key
}

func (w tenant) holding(algorithm string) holder { return holder{w, prover.New(algorithm)} }

// url returns the URL of a path as this client sees it.
func (h holder) url(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return "http://" + h.on.address + path
}

// proof is one for the request, without an access token.
func (h holder) proof(method, path string) prover.Proof {
	return prover.Proof{Method: method, URL: h.url(path)}
}

func withProof(text string) option { return header("DPoP", text) }

// proven presents a token with a new proof for the request.
func (h holder) proven(access, method, path string) option {
	p := h.proof(method, path)
	p.Token = access
	return allOf(header("Authorization", "DPoP "+access), withProof(h.key.Prove(p)))
}

// exchange gets a pair that is bound to the key.
func (h holder) exchange() pair {
	h.t.Helper()
	r := h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, withProof(h.key.Prove(h.proof("POST", "/v1/auth/token"))))
	return pairIn(r.is(200).exactly(aBoundPair))
}

var aBoundPair = fields{
	"access_token": anAccessToken, "refresh_token": aRefreshToken, "token_type": "DPoP", "expires_in": 3600,
}

// boundTo fails the test unless the access token is bound to the key, or to none for "".
func (c *client) boundTo(access, thumbprint string) {
	c.t.Helper()
	_, claims := verify(c.t, c, access)
	confirmed, _ := claims["cnf"].(map[string]any)
	if got, _ := confirmed["jkt"].(string); got != thumbprint {
		c.t.Errorf("the access token is bound to %q, want %q", got, thumbprint)
	}
}

func TestEachTokenEndpointBindsToTheKeyOfAProof(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for _, algorithm := range token.ProofAlgorithms() {
			h := api.newTenant().holding(algorithm)
			prove := func(path string) option { return withProof(h.key.Prove(h.proof("POST", path))) }
			first := h.exchange()
			h.boundTo(first.access, h.key.Thumbprint())
			second := pairIn(h.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}, prove("/v1/auth/refresh")).is(200).exactly(aBoundPair))
			h.boundTo(second.access, h.key.Thumbprint())
			bound := aGrant("read write")
			bound["token_type"] = "DPoP"
			granted := h.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(h.agent), prove("/oauth2/token")).is(200).exactly(bound)
			h.boundTo(granted.text("access_token"), h.key.Thumbprint())
			renewed := h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", granted.text("refresh_token")), byBasic(h.agent), prove("/oauth2/token")).is(200).exactly(bound)
			for _, access := range []string{first.access, second.access, granted.text("access_token"), renewed.text("access_token")} {
				h.get("/sessions", h.proven(access, "GET", "/sessions")).is(200)
			}
		}
	})
}

// A family without a key stays so: only the new access token is bound.
func TestAProofAtTheRefreshOfAnUnboundFamilyBindsTheAccessToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		first := h.tenant.exchange()
		second := pairIn(h.post("/v1/auth/refresh", fields{"refresh_token": first.refresh},
			withProof(h.key.Prove(h.proof("POST", "/v1/auth/refresh")))).is(200).exactly(aBoundPair))
		h.boundTo(second.access, h.key.Thumbprint())
		third := pairIn(h.post("/v1/auth/refresh", fields{"refresh_token": second.refresh}).is(200).exactly(aPair))
		h.boundTo(third.access, "")
	})
}

func TestARefreshOfABoundFamilyNeedsItsKeyAndSpendsNothingWithoutIt(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("EdDSA")
		thief := h.tenant.holding("EdDSA")
		bound := h.exchange()
		for name, options := range map[string][]option{
			"no proof":    nil,
			"another key": {withProof(thief.key.Prove(h.proof("POST", "/v1/auth/refresh")))},
		} {
			t.Run(name, func(t *testing.T) {
				h.in(t).post("/v1/auth/refresh", fields{"refresh_token": bound.refresh}, options...).refused(401, "invalid_refresh_token")
			})
		}
		thiefs := withProof(thief.key.Prove(h.proof("POST", "/oauth2/token")))
		h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", bound.refresh), byBasic(h.agent), thiefs).refusedOAuth(400, "invalid_grant")
		h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", bound.refresh), byBasic(h.agent)).refusedOAuth(400, "invalid_grant")
		h.get("/sessions", h.proven(bound.access, "GET", "/sessions")).is(200)
		next := pairIn(h.post("/v1/auth/refresh", fields{"refresh_token": bound.refresh},
			withProof(h.key.Prove(h.proof("POST", "/v1/auth/refresh")))).is(200))
		h.get("/sessions", h.proven(next.access, "GET", "/sessions")).is(200)
	})
}

// faultyProofs are proofs that every endpoint refuses, by what is wrong with them. What else may be, internal/token shows.
func (h holder) faultyProofs(good prover.Proof) map[string]option {
	signed := func(change func(header, claims map[string]any)) option {
		header, claims := h.key.Header(), good.Claims()
		change(header, claims)
		return withProof(h.key.Sign(header, claims))
	}
	text := func(change func(*prover.Proof)) option {
		p := good
		change(&p)
		return withProof(h.key.Prove(p))
	}
	without := func(name string) func(header, claims map[string]any) {
		return func(header, claims map[string]any) { delete(header, name); delete(claims, name) }
	}
	faulty := map[string]option{
		"another method":    text(func(p *prover.Proof) { p.Method = "PUT" }),
		"another path":      text(func(p *prover.Proof) { p.URL += "/other" }),
		"another host":      text(func(p *prover.Proof) { p.URL = strings.Replace(p.URL, "127.0.0.1", "localhost", 1) }),
		"another scheme":    text(func(p *prover.Proof) { p.URL = strings.Replace(p.URL, "http:", "https:", 1) }),
		"over a minute old": text(func(p *prover.Proof) { p.Issued = time.Now().Add(-62 * time.Second) }),
		"no jti":            signed(without("jti")),
		"another typ":       signed(func(header, _ map[string]any) { header["typ"] = "JWT" }),
		"alg none":          signed(func(header, _ map[string]any) { header["alg"] = "none" }),
		"another's key":     signed(func(header, _ map[string]any) { header["jwk"] = prover.New(h.key.Algorithm).JWK() }),
		"no JWT":            withProof("proof"),
		"nothing":           withProof(""),
		"two in one line":   withProof(h.key.Prove(good) + ", " + h.key.Prove(good)),
	}
	return faulty
}

func TestATokenEndpointRefusesAFaultyProofAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		h := w.holding("ES256")
		refresh := w.exchange().refresh
		for name, proof := range h.faultyProofs(h.proof("POST", "/v1/auth/token")) {
			r := h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, proof)
			if r.status != 400 || r.object()["code"] != "invalid_dpop_proof" || r.header.Get("DPoP-Nonce") == "" {
				t.Errorf("%s: %d %s", name, r.status, r.body)
			}
		}
		for name, proof := range h.faultyProofs(h.proof("POST", "/v1/auth/refresh")) {
			r := h.post("/v1/auth/refresh", fields{"refresh_token": refresh}, proof)
			if r.status != 400 || r.object()["code"] != "invalid_dpop_proof" {
				t.Errorf("%s: %d %s", name, r.status, r.body)
			}
		}
		twice := func(h2 http.Header) {
			h2["Dpop"] = []string{h.key.Prove(h.proof("POST", "/oauth2/token")), h.key.Prove(h.proof("POST", "/oauth2/token"))}
		}
		faulty := h.faultyProofs(h.proof("POST", "/oauth2/token"))
		faulty["two headers"] = twice
		for name, proof := range faulty {
			t.Run(name, func(t *testing.T) {
				h.in(t).postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(h.agent), proof).refusedOAuth(400, "invalid_dpop_proof")
				h.in(t).postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", refresh), byBasic(h.agent), proof).refusedOAuth(400, "invalid_dpop_proof")
			})
		}
		w.post("/v1/auth/refresh", fields{"refresh_token": refresh}).is(200)
	})
}

const dpopAlgorithms = `algs="ES256 ES384 EdDSA RS256 PS256 Ed25519"`

func TestABoundTokenIsRefusedWithAFaultyProof(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		access, other := h.exchange().access, h.exchange().access
		good := h.proof("GET", "/sessions")
		good.Token = access
		as := header("Authorization", "DPoP "+access)
		faulty := h.faultyProofs(good)
		wrong := func(change func(*prover.Proof)) option {
			p := good
			change(&p)
			return withProof(h.key.Prove(p))
		}
		faulty["no ath"] = wrong(func(p *prover.Proof) { p.Token = "" })
		faulty["the ath of another token"] = wrong(func(p *prover.Proof) { p.Token = other })
		faulty["another key"] = withProof(prover.New("ES256").Prove(good))
		faulty["no proof"] = func(http.Header) {}
		for name, proof := range faulty {
			r := h.get("/sessions", as, proof)
			challenge := r.header.Get("WWW-Authenticate")
			if r.status != 401 || r.object()["code"] != "invalid_dpop_proof" || !strings.HasPrefix(challenge, `DPoP realm="remit", error="invalid_dpop_proof"`) ||
				!strings.HasSuffix(challenge, dpopAlgorithms) {
				t.Errorf("%s: %d %s %q", name, r.status, r.body, challenge)
			}
			for _, path := range []string{verifyPath, authorizePath} {
				if r := h.get(path, as, proof); r.status != 401 || r.object()["code"] != "invalid_dpop_proof" {
					t.Errorf("%s at %s: %d %s", name, path, r.status, r.body)
				}
			}
		}
		twice := func(into http.Header) { into["Dpop"] = []string{h.key.Prove(good), h.key.Prove(good)} }
		h.get("/sessions", as, twice).refused(400, "invalid_request")
		h.get(verifyPath, as, twice).refused(403, "invalid_request")
		h.get("/sessions", as, withProof(h.key.Prove(good))).is(200)
	})
}

func TestASchemeThatDoesNotFitTheTokenIsRefused(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		bound, unbound := h.exchange().access, h.tenant.exchange().access
		for _, path := range []string{"/sessions", verifyPath, authorizePath} {
			p := h.proof("GET", path)
			p.Token = bound
			r := h.get(path, asAgent(bound), withProof(h.key.Prove(p))).refused(401, "invalid_token")
			if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `Bearer realm="remit", error="invalid_token"`) || !strings.HasSuffix(got, ", DPoP "+dpopAlgorithms) {
				t.Errorf("a bound token as Bearer: %q", got)
			}
			r = h.get(path, h.proven(unbound, "GET", path)).refused(401, "invalid_token")
			if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `DPoP realm="remit", error="invalid_token"`) {
				t.Errorf("an unbound token as DPoP: %q", got)
			}
			h.get(path, h.proven("e30.e30.e30", "GET", path)).refused(401, "invalid_token")
		}
		both := func(into http.Header) { into["Authorization"] = []string{"Bearer " + unbound, "DPoP " + bound} }
		h.get("/sessions", both).refused(400, "invalid_request")
		h.get("/sessions", h.proven(bound, "GET", "/sessions"), asKey(h.tenant.key)).refused(400, "invalid_request")
		// A proof beside an unbound token proves nothing, and harms nothing.
		h.get("/sessions", asAgent(unbound), withProof("nonsense")).is(200)
	})
}

func TestEveryEndpointOfAgentsTakesABoundToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("EdDSA")
		access := h.exchange().access
		session, transaction := h.newSession(nil), h.begin(nil)
		for _, e := range append(endpointsOfBoth(h.tenant, session, transaction), endpointsOfAgents(h.tenant, session, transaction)...) {
			r := h.ask(e.method, e.path, e.body, h.proven(access, e.method, e.path))
			if r.status == 401 {
				t.Errorf("%s %s: %s", e.method, e.path, r.body)
			}
			h.ask(e.method, e.path, e.body, asAgent(access)).refused(401, "invalid_token")
			h.ask(e.method, e.path, e.body, header("Authorization", "DPoP "+access)).refused(401, "invalid_dpop_proof")
		}
	})
}

func TestOneProofPassesOnceOnAllInstances(t *testing.T) {
	t.Parallel()
	onEachRedisWith(t, setup{issuer: "https://remit.example"}, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		there := h.through(api.another(t))
		access := h.exchange().access
		for range 20 {
			p := prover.Proof{Method: "GET", URL: "https://remit.example" + verifyPath, Token: access}
			again := allOf(header("Authorization", "DPoP "+access), withProof(h.key.Prove(p)))
			var passed, refused atomic.Int32
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					at := []tenant{h.tenant, there}[i%2]
					r, err := at.try("GET", verifyPath, nil, again)
					if err != nil {
						t.Error(err)
						return
					}
					r.t = t
					switch {
					case r.status == 200:
						passed.Add(1)
					case r.status == 401 && r.object()["code"] == "invalid_dpop_proof":
						refused.Add(1)
					default:
						t.Errorf("%d %s", r.status, r.body)
					}
				})
			}
			wg.Wait()
			if passed.Load() != 1 || refused.Load() != 3 {
				t.Fatalf("%d passed, %d were refused", passed.Load(), refused.Load())
			}
		}
	})
}

func TestAProofOfATokenEndpointIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		once := withProof(h.key.Prove(h.proof("POST", "/oauth2/token")))
		ask := func(a agent) *response {
			return h.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(a), once)
		}
		ask(agent{h.agent.id, token.NewAgentSecret()}).refusedOAuth(401, "invalid_client") // which uses up no proof
		ask(h.agent).is(200)
		ask(h.agent).refusedOAuth(400, "invalid_dpop_proof")
		again := withProof(h.key.Prove(h.proof("POST", "/v1/auth/token")))
		body := fields{"agent_id": h.agent.id, "secret": h.agent.secret}
		h.post("/v1/auth/token", body, again).is(200)
		h.post("/v1/auth/token", body, again).refused(400, "invalid_dpop_proof")
	})
}

func TestEveryAnswerToAProofOffersANonce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		access := h.exchange().access
		first := h.get("/sessions", h.proven(access, "GET", "/sessions")).is(200)
		nonce := first.header.Get("DPoP-Nonce")
		for what, r := range map[string]*response{
			"a page":          h.get("/healthz", withProof("x")),
			"an unknown path": h.get("/nowhere", withProof("x")),
			"bad JSON":        h.post("/v1/auth/token", raw("{"), withProof("x")),
			"a bearer token":  h.get("/sessions", asAgent("x"), withProof("x")),
		} {
			if r.header.Get("DPoP-Nonce") == "" {
				t.Errorf("%s: no DPoP-Nonce", what)
			}
		}
		if got := h.get("/sessions", asKey(h.tenant.key)).header.Get("DPoP-Nonce"); got != "" {
			t.Errorf("a request without a proof gets the nonce %s", got)
		}
		p := h.proof("GET", "/sessions")
		p.Token, p.Nonce = access, nonce
		as := header("Authorization", "DPoP "+access)
		h.get("/sessions", as, withProof(h.key.Prove(p))).is(200)
		p.Nonce = base64.RawURLEncoding.EncodeToString(make([]byte, 20))
		r := h.get("/sessions", as, withProof(h.key.Prove(p))).refused(401, "use_dpop_nonce")
		if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `DPoP realm="remit", error="use_dpop_nonce"`) || r.header.Get("DPoP-Nonce") == "" {
			t.Errorf("%q", got)
		}
		asked := h.proof("POST", "/oauth2/token")
		asked.Nonce = p.Nonce
		h.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(h.agent), withProof(h.key.Prove(asked))).refusedOAuth(400, "use_dpop_nonce")
		asked.URL = h.url("/v1/auth/token")
		h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, withProof(h.key.Prove(asked))).refused(400, "use_dpop_nonce")
	})
}

func TestIntrospectionTellsTheKeyOfABoundToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		bound, unbound := h.exchange(), h.tenant.exchange()
		for text, want := range map[string]string{bound.access: "DPoP", bound.refresh: "refresh_token"} {
			for _, r := range []*response{
				h.post("/v1/auth/introspect", fields{"token": text}, asKey(h.tenant.key)).is(200),
				h.postForm("/oauth2/introspect", form("token", text), byBasic(h.agent)).is(200),
			} {
				body := r.object()
				confirmed, _ := body["cnf"].(map[string]any)
				if body["token_type"] != want || confirmed["jkt"] != h.key.Thumbprint() {
					t.Errorf("%s", r.body)
				}
			}
		}
		for text, want := range map[string]string{unbound.access: "Bearer", unbound.refresh: "refresh_token"} {
			body := h.post("/v1/auth/introspect", fields{"token": text}, asKey(h.tenant.key)).is(200).object()
			if _, has := body["cnf"]; has || body["token_type"] != want {
				t.Errorf("%v", body)
			}
		}
	})
}

func TestAProxyLearnsTheKeyOfABoundToken(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		bound, unbound := h.exchange().access, h.tenant.exchange().access
		session := header("X-Session-Id", h.newSession(nil))
		for _, path := range []string{verifyPath, authorizePath} {
			if got := h.get(path, h.proven(bound, "GET", path), session).identifies(h.tenant, "read", "write").header.Get("X-Cnf-Jkt"); got != h.key.Thumbprint() {
				t.Errorf("%s: X-Cnf-Jkt %q", path, got)
			}
			if got, has := h.get(path, asAgent(unbound), session).is(200).header["X-Cnf-Jkt"]; has {
				t.Errorf("%s: X-Cnf-Jkt %q of an unbound token", path, got)
			}
		}
	})
}

// A proof is compared with what the client sees: behind a trusted proxy with what that tells, else with the request itself.
func TestAProofIsForTheURLThatItsClientSees(t *testing.T) {
	t.Parallel()
	const public = "https://remit.example"
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	forwarded := func(pairs ...string) option {
		return func(into http.Header) {
			for i := 0; i < len(pairs); i += 2 {
				into.Add(pairs[i], pairs[i+1])
			}
		}
	}
	own := func(path string) func(h holder) (string, string) {
		return func(h holder) (string, string) { return "GET", h.url(path) }
	}
	at := func(method, url string) func(h holder) (string, string) {
		return func(holder) (string, string) { return method, url }
	}
	original := forwarded("X-Original-Method", "PUT", "X-Original-Uri", "/search?q=1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example")
	for name, test := range map[string]struct {
		proxies []netip.Prefix
		path    string
		headers option
		proof   func(h holder) (method, url string)
		want    int
	}{
		"directly":                               {nil, "/sessions", nil, own("/sessions"), 200},
		"with a query":                           {nil, "/sessions?limit=1", nil, own("/sessions"), 200},
		"by the issuer's URL":                    {nil, "/sessions", nil, at("GET", public+"/sessions"), 200},
		"by the issuer's URL, another path":      {nil, "/sessions", nil, at("GET", public+"/v1/sessions"), 401},
		"a stranger's forwarded host":            {nil, "/sessions", forwarded("X-Forwarded-Host", "evil.example"), at("GET", "http://evil.example/sessions"), 401},
		"a trusted proxy's forwarded host":       {trusted, "/sessions", forwarded("X-Forwarded-Host", "api.example", "X-Forwarded-Proto", "https"), at("GET", "https://api.example/sessions"), 200},
		"a trusted proxy's, own scheme":          {trusted, "/sessions", forwarded("X-Forwarded-Host", "api.example"), at("GET", "http://api.example/sessions"), 200},
		"of two proxies the nearest":             {trusted, "/sessions", forwarded("X-Forwarded-Host", "evil.example, api.example"), at("GET", "http://api.example/sessions"), 200},
		"of two proxies not the first":           {trusted, "/sessions", forwarded("X-Forwarded-Host", "evil.example", "X-Forwarded-Host", "api.example"), at("GET", "http://evil.example/sessions"), 401},
		"a forwarded host that is none":          {trusted, "/sessions", forwarded("X-Forwarded-Host", "a b"), own("/sessions"), 200},
		"other endpoints have no original":       {trusted, "/sessions", original, at("PUT", "https://api.example/search"), 401},
		"verify itself":                          {trusted, verifyPath, nil, own(verifyPath), 200},
		"verify for a proxy, X-Original":         {trusted, verifyPath + "?scope=read", original, at("PUT", "https://api.example/search"), 200},
		"verify for a proxy, not its own URL":    {trusted, verifyPath, original, at("GET", "https://api.example"+verifyPath), 401},
		"verify for a proxy, another method":     {trusted, verifyPath, original, at("GET", "https://api.example/search"), 401},
		"verify for a proxy, another path":       {trusted, verifyPath, original, at("PUT", "https://api.example/search/"), 401},
		"verify for a proxy that is not trusted": {nil, verifyPath, original, at("PUT", "https://api.example/search"), 401},
		"authorize for a proxy":                  {trusted, authorizePath, original, at("PUT", "https://api.example/search"), 200},
		"verify, X-Forwarded":                    {trusted, verifyPath, forwarded("X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/a%2Fb?x", "X-Forwarded-Host", "api.example", "X-Forwarded-Proto", "https"), at("POST", "https://api.example/a%2Fb"), 200},
		"verify, a whole URL":                    {trusted, verifyPath, forwarded("X-Original-Method", "POST", "X-Original-Url", "https://api.example:443/a?x"), at("POST", "https://api.example/a"), 200},
		"verify, two kinds of headers":           {trusted, verifyPath, allOf(original, forwarded("X-Forwarded-Uri", "/cheap")), at("PUT", "https://api.example/search"), 401},
		"verify, two kinds, the other one":       {trusted, verifyPath, allOf(original, forwarded("X-Forwarded-Uri", "/cheap", "X-Forwarded-Method", "PUT")), at("PUT", "https://api.example/cheap"), 401},
		"verify, a URI and a URL":                {trusted, verifyPath, allOf(original, forwarded("X-Original-Url", "https://api.example/cheap")), at("PUT", "https://api.example/cheap"), 401},
		"verify, one header twice":               {trusted, verifyPath, allOf(original, forwarded("X-Original-Uri", "/cheap")), at("PUT", "https://api.example/search"), 401},
		"Envoy's path":                           {trusted, verifyPath + "/search/a%20b?q", forwarded("X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example"), at("GET", "https://api.example/search/a%20b"), 200},
		"Envoy's path, not trusted":              {nil, verifyPath + "/search", nil, own("/search"), 401},
		"Envoy's path, not trusted, as it is":    {nil, verifyPath + "/search", nil, own(verifyPath + "/search"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := onMiniredis(t, setup{proxies: test.proxies, issuer: public})
			h := api.newTenant().holding("EdDSA")
			access := h.exchange().access
			method, url := test.proof(h)
			p := prover.Proof{Method: method, URL: url, Token: access}
			options := []option{header("Authorization", "DPoP "+access), withProof(h.key.Prove(p)), header("X-Session-Id", h.newSession(nil))}
			if test.headers != nil {
				options = append(options, test.headers)
			}
			if r := h.get(test.path, options...); r.status != test.want {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
}

// With an issuer that the operator names, proofs are for its host, loopback names and the hosts that are listed: a server that a client
// calls with a bound token could otherwise use token and proof here, under its own name.
func TestAProofIsForNoOtherHostThanTheIssuersLoopbackAndThoseListed(t *testing.T) {
	t.Parallel()
	const public = "https://remit.example"
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	hosts := hostsOf(t, "api.example", "Remit.Internal:8443", "[2001:db8::1]:80").WithIssuer(public)
	asked := func(host string) option { return header("X-Forwarded-Host", host) }
	overTLS := func(host string) option { return allOf(asked(host), header("X-Forwarded-Proto", "https")) }
	original := func(url string) option {
		return allOf(header("X-Original-Method", "GET"), header("X-Original-Url", url), asked("evil.example"))
	}
	for name, test := range map[string]struct {
		path    string
		headers option
		url     string
		want    int
	}{
		"the issuer's host":                     {"/sessions", overTLS("remit.example"), public + "/sessions", 200},
		"the issuer's host, whatever the proxy": {"/sessions", overTLS("evil.example"), public + "/sessions", 200},
		"the issuer's host, another port":       {"/sessions", asked("remit.example:8080"), "http://remit.example:8080/sessions", 200},
		"a host that ends like it":              {"/sessions", overTLS("evilremit.example"), "https://evilremit.example/sessions", 401},
		"a host below it":                       {"/sessions", overTLS("evil.remit.example"), "https://evil.remit.example/sessions", 401},
		"a listed host":                         {"/sessions", overTLS("API.example"), "https://api.example/sessions", 200},
		"a listed host, any port":               {"/sessions", asked("api.example:81"), "http://api.example:81/sessions", 200},
		"a listed port":                         {"/sessions", overTLS("remit.internal:8443"), "https://remit.internal:8443/sessions", 200},
		"a listed host, another port":           {"/sessions", overTLS("remit.internal"), "https://remit.internal/sessions", 401},
		"a listed address":                      {"/sessions", asked("[2001:db8:0::1]"), "http://[2001:db8:0::1]/sessions", 200},
		"a listed address, another port":        {"/sessions", overTLS("[2001:db8::1]"), "https://[2001:db8::1]/sessions", 401},
		"localhost":                             {"/sessions", asked("localhost:8080"), "http://localhost:8080/sessions", 200},
		"this address":                          {"/sessions", asked("[::1]:8080"), "http://[::1]:8080/sessions", 200},
		"another host":                          {"/sessions", overTLS("evil.example"), "https://evil.example/sessions", 401},
		"a proxy's host":                        {verifyPath, original("https://api.example/x"), "https://api.example/x", 200},
		"a proxy's issuer":                      {verifyPath, original(public + "/x"), public + "/x", 200},
		"a proxy's other host":                  {verifyPath, original("https://evil.example/x"), "https://evil.example/x", 401},
		"a proxy's other host, by a path":       {verifyPath, original("/x"), "http://evil.example/x", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := onMiniredis(t, setup{proxies: trusted, issuer: public, hosts: hosts}).newTenant().holding("EdDSA")
			access := h.exchange().access
			p := prover.Proof{Method: "GET", URL: test.url, Token: access}
			r := h.get(test.path, header("Authorization", "DPoP "+access), withProof(h.key.Prove(p)), test.headers)
			if r.status != test.want {
				t.Errorf("%d %s", r.status, r.body)
			}
			if r.status == 401 {
				r.refused(401, "invalid_dpop_proof")
			}
			atTokens := map[int]int{200: 200, 401: 400}
			p = prover.Proof{Method: "POST", URL: strings.TrimSuffix(test.url, "/sessions") + "/v1/auth/token"}
			if test.path != verifyPath {
				h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, withProof(h.key.Prove(p)), test.headers).is(atTokens[test.want])
			}
		})
	}
}

func hostsOf(t *testing.T, texts ...string) access.ProofHosts {
	t.Helper()
	hosts := make(access.ProofHosts, len(texts))
	for i, text := range texts {
		if err := hosts[i].UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

func TestAProofHostThatIsNoHostIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "https://api.example", "api.example/x", "*.example", "a b", "api.example:", "api.example:0", "api.example:65536",
		"api.example:http", "user@api.example", "::1", "[::1", "[fe80::1%25eth0]", ":8080", "api.example,b", "api.example?x", "a%2Fb"} {
		var host access.ProofHost
		if err := host.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "no host") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is refused before the store is asked costs Redis nothing.
func TestARefusedProofCostsRedisNothing(t *testing.T) {
	t.Parallel()
	private := privateRedis(t)
	api := start(t, setup{redis: private.URL()})
	h := api.newTenant().holding("ES256")
	access := h.exchange().access
	h.get(verifyPath, h.proven(access, "GET", verifyPath)).is(200)
	good := h.proof("GET", verifyPath)
	good.Token = access
	as := header("Authorization", "DPoP "+access)
	faulty := h.faultyProofs(good)
	faulty["another key"] = withProof(prover.New("ES256").Prove(good))
	calls := countCalls(t, private.URL())
	before := calls()
	for _, proof := range faulty {
		h.get(verifyPath, as, proof).refused(401, "invalid_dpop_proof")
		h.get("/sessions", as, proof).refused(401, "invalid_dpop_proof")
		h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, proof).refused(400, "invalid_dpop_proof")
	}
	if cost := calls() - before; cost > 10 { // an instance makes a call of its own once a second
		t.Errorf("they cost Redis %d calls", cost)
	}
}

// A thief of a bound token gets none for it that is bound to another key, or to none.
func TestABoundTokenIsExchangedWithAProofOfItsKeyOnly(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDelegation()
		h := holder{d.tenant, prover.New("ES256")}
		ask := func(subject string, options ...option) *response {
			return h.postForm("/oauth2/token", form("grant_type", exchangeGrant, "subject_token", subject,
				"subject_token_type", accessTokenType, "session_id", d.child), options...)
		}
		bound := h.exchange().access
		ask(bound).refusedOAuth(400, "invalid_dpop_proof")
		thief := holder{d.tenant, prover.New("ES256")}
		ask(bound, withProof(thief.key.Prove(h.proof("POST", "/oauth2/token")))).refusedOAuth(400, "invalid_dpop_proof")
		once := withProof(h.key.Prove(h.proof("POST", "/oauth2/token")))
		granted := ask(bound, once).is(200)
		if got := granted.text("token_type"); got != "DPoP" {
			t.Errorf("token_type %s", got)
		}
		ask(bound, once).refusedOAuth(400, "invalid_dpop_proof")
		delegated := granted.text("access_token")
		h.boundTo(delegated, h.key.Thumbprint())
		path := "/v1/sessions/" + d.child
		h.get(path, h.proven(delegated, "GET", path)).is(200)
		h.get(path, asAgent(delegated)).refused(401, "invalid_token")
		h.get(path, header("Authorization", "DPoP "+delegated)).refused(401, "invalid_dpop_proof")
		h.get(verifyPath, h.proven(delegated, "GET", verifyPath)).is(200)

		unbound := ask(d.planner.access, withProof(h.key.Prove(h.proof("POST", "/oauth2/token")))).is(200)
		h.boundTo(unbound.text("access_token"), h.key.Thumbprint())
	})
}

func TestAnAgentThatRequiresProofsGetsAndUsesBoundTokensOnly(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES256")
		before, bound := h.tenant.exchange(), h.exchange()
		session, transaction := h.newSession(nil), h.begin(nil)
		path := "/v1/agents/" + h.agent.id
		h.patch(path, fields{"dpop_required": true}, asKey(h.tenant.key)).is(200)

		body := fields{"agent_id": h.agent.id, "secret": h.agent.secret}
		refused := h.post("/v1/auth/token", body).refused(401, "dpop_required")
		if got := refused.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `DPoP realm="remit"`) || !strings.HasSuffix(got, dpopAlgorithms) {
			t.Errorf("WWW-Authenticate %q", got)
		}
		h.post("/v1/auth/refresh", fields{"refresh_token": before.refresh}).refused(401, "dpop_required")
		h.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(h.agent)).refusedOAuth(400, "invalid_dpop_proof", own("dpop_required"))
		h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", before.refresh), byBasic(h.agent)).refusedOAuth(400, "invalid_dpop_proof", own("dpop_required"))
		for _, e := range append(endpointsOfBoth(h.tenant, session, transaction), endpointsOfAgents(h.tenant, session, transaction)...) {
			h.ask(e.method, e.path, e.body, asAgent(before.access)).refused(401, "invalid_token")
		}
		h.get("/sessions", h.proven(bound.access, "GET", "/sessions")).is(200)
		h.exchange()
		h.post("/v1/auth/refresh", fields{"refresh_token": before.refresh}, withProof(h.key.Prove(h.proof("POST", "/v1/auth/refresh")))).is(200)
		h.post("/v1/auth/introspect", fields{"token": before.access}, asKey(h.tenant.key)).is(200).exactly(fields{"active": false})
		h.patch(path, fields{"dpop_required": false}, asKey(h.tenant.key)).is(200)
		h.get("/sessions", asAgent(before.access)).is(200)
	})
}

// A client that authenticates presents no access token, so none that is bound to a key can be wanted of it.
func TestAnAgentThatRequiresProofsRevokesWithItsClientCredentials(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDelegation()
		h := holder{d.tenant, prover.New("ES256")}
		bound := h.exchange()
		for _, id := range []string{d.agent.id, d.worker.id} {
			h.patch("/v1/agents/"+id, fields{"dpop_required": true}, asKey(h.tenant.key)).is(200)
		}
		verify := func(access string) *response { return h.get(verifyPath, h.proven(access, "GET", verifyPath)) }
		verify(bound.access).is(200)
		for name, token := range map[string]string{"a refresh token": bound.refresh, "an unbound access token": d.planner.access} {
			t.Run(name, func(t *testing.T) {
				h.in(t).postForm("/oauth2/revoke", form("token", token), byBasic(h.agent)).is(200)
			})
		}
		verify(bound.access).refused(401, "invalid_token")

		fresh := h.exchange()
		delegated := h.postForm("/oauth2/token", form("grant_type", exchangeGrant, "subject_token", fresh.access,
			"subject_token_type", accessTokenType, "session_id", d.child), withProof(h.key.Prove(h.proof("POST", "/oauth2/token")))).
			is(200).text("access_token")
		verify(delegated).is(200)
		h.postForm("/oauth2/revoke", form("token", delegated), byBasic(h.agent)).is(200)
		verify(delegated).refused(401, "invalid_token")
		verify(fresh.access).is(200)
	})
}

// A proof costs more than anything else in such a request, and a sender may make as many as he likes.
func TestAProofIsNotVerifiedWhereNoLimitCountsFailures(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		h := api.newTenant().holding("ES384")
		forged := h.key.Prove(h.proof("POST", "/oauth2/token"))
		forged = forged[:len(forged)-8] + strings.Repeat("A", 8)
		exchange := []string{"grant_type", exchangeGrant, "subject_token_type", accessTokenType, "session_id", h.agent.id}
		for name, test := range map[string]struct {
			form []string
			code string
		}{
			"no grant type":                 {nil, "invalid_request"},
			"another grant type":            {[]string{"grant_type", "password"}, "unsupported_grant_type"},
			"a refresh without a token":     {[]string{"grant_type", "refresh_token"}, "invalid_request"},
			"an exchange of a foreign text": {append(exchange, "subject_token", "a.b.c"), "invalid_request"},
		} {
			t.Run(name, func(t *testing.T) {
				h.in(t).postForm("/oauth2/token", byPost(h.agent, test.form...), withProof(forged)).refusedOAuth(400, test.code)
			})
		}
		h.postForm("/oauth2/token", byPost(h.agent, "grant_type", "client_credentials"), withProof(forged)).refusedOAuth(400, "invalid_dpop_proof")
	})
}
