package server_test

import (
	"encoding/base64"
	"net/http"
	"net/netip"
	"strings"
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

func (c *client) newHolder() holder {
	c.t.Helper()
	return c.newTenant().holding("ES256")
}

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
	return pairIn(h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, h.at("/v1/auth/token")).is(200).exactly(aBoundPair))
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

var (
	aBoundPair  = aPair.with(fields{"token_type": "DPoP"})
	aBoundGrant = aGrant("read write").with(fields{"token_type": "DPoP"})
)

// at returns a new proof for a token endpoint.
func (h holder) at(path string) option { return withProof(h.key.Prove(h.proof("POST", path))) }

func TestEachTokenEndpointBindsToTheKeyOfAProof(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for _, algorithm := range token.ProofAlgorithms() {
			h := api.newTenant().holding(algorithm)
			first := h.exchange()
			second := pairIn(h.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}, h.at("/v1/auth/refresh")).is(200).exactly(aBoundPair))
			byItself := allOf(byBasic(h.agent), h.at("/oauth2/token"))
			granted := h.postForm("/oauth2/token", form("grant_type", "client_credentials"), byItself).is(200).exactly(aBoundGrant)
			renewed := h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", granted.text("refresh_token")),
				byBasic(h.agent), h.at("/oauth2/token")).is(200).exactly(aBoundGrant)
			for _, access := range []string{first.access, second.access, granted.text("access_token"), renewed.text("access_token")} {
				h.boundTo(access, h.key.Thumbprint())
				h.get("/sessions", h.proven(access, "GET", "/sessions")).is(200)
			}
			// A family without a key stays so: only the new access token is bound.
			unbound := fields{"refresh_token": h.tenant.exchange().refresh}
			next := pairIn(h.post("/v1/auth/refresh", unbound, h.at("/v1/auth/refresh")).is(200).exactly(aBoundPair))
			h.boundTo(next.access, h.key.Thumbprint())
			h.boundTo(pairIn(h.post("/v1/auth/refresh", fields{"refresh_token": next.refresh}).is(200).exactly(aPair)).access, "")
		}
	})
}

func TestARefreshOfABoundFamilyNeedsItsKeyAndSpendsNothingWithoutIt(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
		thief, bound := h.tenant.holding("EdDSA"), h.exchange()
		renew := func(options ...option) *response {
			return h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", bound.refresh), append(options, byBasic(h.agent))...)
		}
		refresh := fields{"refresh_token": bound.refresh}
		h.post("/v1/auth/refresh", refresh).refused(401, "invalid_refresh_token")
		h.post("/v1/auth/refresh", refresh, thief.at("/v1/auth/refresh")).refused(401, "invalid_refresh_token")
		renew().refusedOAuth(400, "invalid_grant")
		renew(thief.at("/oauth2/token")).refusedOAuth(400, "invalid_grant")
		next := pairIn(h.post("/v1/auth/refresh", refresh, h.at("/v1/auth/refresh")).is(200))
		for _, access := range []string{bound.access, next.access} {
			h.get("/sessions", h.proven(access, "GET", "/sessions")).is(200)
		}
	})
}

// faultyProofs are proofs that every endpoint refuses, by what is wrong with them. What else may be, internal/token shows.
func (h holder) faultyProofs(good prover.Proof) map[string]option {
	with := func(change func(*prover.Proof)) option {
		p := good
		change(&p)
		return withProof(h.key.Prove(p))
	}
	return map[string]option{
		"another method":    with(func(p *prover.Proof) { p.Method = "PUT" }),
		"another path":      with(func(p *prover.Proof) { p.URL += "/other" }),
		"another host":      with(func(p *prover.Proof) { p.URL = strings.Replace(p.URL, "127.0.0.1", "localhost", 1) }),
		"another scheme":    with(func(p *prover.Proof) { p.URL = strings.Replace(p.URL, "http:", "https:", 1) }),
		"over a minute old": with(func(p *prover.Proof) { p.Issued = time.Now().Add(-62 * time.Second) }),
		"no JWT":            withProof("proof"),
		"nothing":           withProof(""),
		"two in one line":   withProof(h.key.Prove(good) + ", " + h.key.Prove(good)),
	}
}

// grants returns how the agent asks each token endpoint for tokens with these headers more, and how they refuse a proof.
func (h holder) grants(refresh string) map[string]func(proof option, code string) {
	return map[string]func(option, string){
		"/v1/auth/token": func(proof option, code string) {
			h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, proof).refused(400, code)
		},
		"/v1/auth/refresh": func(proof option, code string) {
			h.post("/v1/auth/refresh", fields{"refresh_token": refresh}, proof).refused(400, code)
		},
		"/oauth2/token": func(proof option, code string) {
			h.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(h.agent), proof).refusedOAuth(400, code)
			h.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", refresh), byBasic(h.agent), proof).refusedOAuth(400, code)
		},
	}
}

func TestATokenEndpointRefusesAFaultyOrUsedProofAndChangesNothing(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		h, refresh := w.holding("ES256"), w.exchange().refresh
		for path, ask := range h.grants(refresh) {
			faulty := h.faultyProofs(h.proof("POST", path))
			faulty["used"] = h.at(path)
			switch path {
			case "/oauth2/token":
				twice := func(into http.Header) {
					into["Dpop"] = []string{h.key.Prove(h.proof("POST", path)), h.key.Prove(h.proof("POST", path))}
				}
				ask(twice, "invalid_dpop_proof")
				wrong := byBasic(agent{h.agent.id, token.NewAgentSecret()})
				h.postForm(path, form("grant_type", "client_credentials"), wrong, faulty["used"]).refusedOAuth(401, "invalid_client") // which uses up none
				h.postForm(path, form("grant_type", "client_credentials"), byBasic(h.agent), faulty["used"]).is(200)
			case "/v1/auth/token":
				h.post(path, fields{"agent_id": h.agent.id, "secret": h.agent.secret}, faulty["used"]).is(200)
			default:
				h.post(path, fields{"refresh_token": w.exchange().refresh}, faulty["used"]).is(200)
			}
			for name, proof := range faulty {
				if ask(proof, "invalid_dpop_proof"); t.Failed() {
					t.Fatalf("%s at %s", name, path)
				}
			}
			p := h.proof("POST", path)
			p.Nonce = base64.RawURLEncoding.EncodeToString(make([]byte, 20))
			ask(withProof(h.key.Prove(p)), "use_dpop_nonce")
		}
		w.post("/v1/auth/refresh", fields{"refresh_token": refresh}).is(200)
	})
}

const dpopAlgorithms = `algs="ES256 ES384 EdDSA RS256 PS256 Ed25519"`

// That no other instance takes a used one either, redisstore shows.
func TestABoundTokenIsRefusedWithAFaultyOrUsedProof(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
		access, other := h.exchange().access, h.exchange().access
		as := header("Authorization", "DPoP "+access)
		for _, path := range []string{"/sessions", verifyPath, authorizePath} {
			good := h.proof("GET", path)
			good.Token = access
			faulty := h.faultyProofs(good)
			wrong := good
			wrong.Token = ""
			faulty["no ath"] = withProof(h.key.Prove(wrong))
			wrong.Token = other
			faulty["the ath of another token"] = withProof(h.key.Prove(wrong))
			faulty["another key"] = withProof(prover.New("ES256").Prove(good))
			faulty["no proof"] = anonymous
			if path != authorizePath { // which a session is missing for
				faulty["used"] = withProof(h.key.Prove(good))
				h.get(path, as, faulty["used"]).is(200)
			}
			for name, proof := range faulty {
				challenge := h.get(path, as, proof).refused(401, "invalid_dpop_proof").header.Get("WWW-Authenticate")
				if !strings.HasPrefix(challenge, `DPoP realm="remit", error="invalid_dpop_proof"`) || !strings.HasSuffix(challenge, dpopAlgorithms) {
					t.Errorf("%s: %q", name, challenge)
				}
			}
			twice := func(into http.Header) { into["Dpop"] = []string{h.key.Prove(good), h.key.Prove(good)} }
			h.get(path, as, twice).refused(map[bool]int{true: 400, false: 403}[path == "/sessions"], "invalid_request")
		}
		session, transaction := h.newSession(nil), h.begin(nil)
		for _, e := range append(endpointsOfBoth(h.tenant, session, transaction), endpointsOfAgents(h.tenant, session, transaction)...) {
			if r := h.ask(e.method, e.path, e.body, h.proven(access, e.method, e.path)); r.status == 401 {
				t.Errorf("%s %s: %s", e.method, e.path, r.body)
			}
			h.ask(e.method, e.path, e.body, asAgent(access)).refused(401, "invalid_token")
			h.ask(e.method, e.path, e.body, as).refused(401, "invalid_dpop_proof")
		}
	})
}

func TestASchemeThatDoesNotFitTheTokenIsRefused(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
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

func TestEveryAnswerToAProofOffersANonce(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
		access := h.exchange().access
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
		wantEqual(t, "the nonce for a request without a proof", h.get("/sessions", asKey(h.tenant.key)).header.Get("DPoP-Nonce"), "")
		p, as := h.proof("GET", "/sessions"), header("Authorization", "DPoP "+access)
		p.Token, p.Nonce = access, h.get("/sessions", h.proven(access, "GET", "/sessions")).is(200).header.Get("DPoP-Nonce")
		h.get("/sessions", as, withProof(h.key.Prove(p))).is(200)
		p.Nonce = base64.RawURLEncoding.EncodeToString(make([]byte, 20))
		r := h.get("/sessions", as, withProof(h.key.Prove(p))).refused(401, "use_dpop_nonce")
		if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `DPoP realm="remit", error="use_dpop_nonce"`) || r.header.Get("DPoP-Nonce") == "" {
			t.Errorf("%q", got)
		}
	})
}

func TestProxiesAndIntrospectionLearnTheKeyOfABoundToken(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
		bound, unbound, key := h.exchange(), h.tenant.exchange(), map[string]any{"jkt": h.key.Thumbprint()}
		for text, want := range map[string]fields{
			bound.access: {"token_type": "DPoP", "cnf": key}, bound.refresh: {"token_type": "refresh_token", "cnf": key},
			unbound.access: {"token_type": "Bearer"}, unbound.refresh: {"token_type": "refresh_token"},
		} {
			for _, r := range []*response{
				h.post("/v1/auth/introspect", fields{"token": text}, asKey(h.tenant.key)).is(200).has(want),
				h.postForm("/oauth2/introspect", form("token", text), byBasic(h.agent)).is(200).has(want),
			} {
				if want["cnf"] == nil {
					r.lacks("cnf")
				}
			}
		}
		session := header("X-Session-Id", h.newSession(nil))
		for _, path := range []string{verifyPath, authorizePath} {
			r := h.get(path, h.proven(bound.access, "GET", path), session).identifies(h.tenant, "read", "write")
			wantEqual(t, path+": X-Cnf-Jkt", r.header.Get("X-Cnf-Jkt"), h.key.Thumbprint())
			if got, has := h.get(path, asAgent(unbound.access), session).is(200).header["X-Cnf-Jkt"]; has {
				t.Errorf("%s: X-Cnf-Jkt %q of an unbound token", path, got)
			}
		}
	})
}

// A proof is compared with what the client sees: behind a trusted proxy with what that tells, else with the request itself. With an issuer
// that the operator names, proofs are for its host, loopback names and the hosts that are listed: a server that a client calls with a
// bound token could otherwise use token and proof here, under its own name.
func TestAProofIsForTheURLThatItsClientSees(t *testing.T) {
	t.Parallel()
	const public = "https://remit.example"
	direct := setup{issuer: public}
	proxied := setup{issuer: public, proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	named := make(access.ProofHosts, 3)
	for i, host := range []string{"api.example", "Remit.Internal:8443", "[2001:db8::1]:80"} {
		must(0, named[i].UnmarshalText([]byte(host)))(t)
	}
	listed := proxied
	listed.hosts = named.WithIssuer(public)
	forwarded := func(pairs ...string) option {
		return func(into http.Header) {
			for i := 0; i < len(pairs); i += 2 {
				into.Add(pairs[i], pairs[i+1])
			}
		}
	}
	asked := func(host string) option { return forwarded("X-Forwarded-Host", host) }
	overTLS := func(host string) option { return forwarded("X-Forwarded-Host", host, "X-Forwarded-Proto", "https") }
	original := allOf(forwarded("X-Original-Method", "PUT", "X-Original-Uri", "/search?q=1"), overTLS("api.example"))
	posted := forwarded("X-Forwarded-Method", "POST", "X-Forwarded-Uri", "/a%2Fb?x", "X-Forwarded-Host", "api.example", "X-Forwarded-Proto", "https")
	cheap := allOf(original, forwarded("X-Forwarded-Uri", "/cheap"))
	twice := allOf(original, forwarded("X-Original-Uri", "/cheap"))
	twoProxies := allOf(asked("evil.example"), asked("api.example"))
	whole := func(url string) option { return forwarded("X-Original-Method", "GET", "X-Original-Url", url) }
	aURL := allOf(original, whole("https://api.example/cheap"))
	for name, test := range map[string]struct {
		with    setup
		path    string
		headers option
		proof   string // method and URL; a path is one here
		want    int
	}{
		"directly":                               {direct, "/sessions", anonymous, "GET /sessions", 200},
		"with a query":                           {direct, "/sessions?limit=1", anonymous, "GET /sessions", 200},
		"by the issuer's URL":                    {direct, "/sessions", anonymous, "GET " + public + "/sessions", 200},
		"by the issuer's URL, another path":      {direct, "/sessions", anonymous, "GET " + public + "/v1/sessions", 401},
		"a stranger's forwarded host":            {direct, "/sessions", asked("evil.example"), "GET http://evil.example/sessions", 401},
		"a trusted proxy's forwarded host":       {proxied, "/sessions", overTLS("api.example"), "GET https://api.example/sessions", 200},
		"a trusted proxy's, own scheme":          {proxied, "/sessions", asked("api.example"), "GET http://api.example/sessions", 200},
		"of two proxies the nearest":             {proxied, "/sessions", asked("evil.example, api.example"), "GET http://api.example/sessions", 200},
		"of two proxies not the first":           {proxied, "/sessions", twoProxies, "GET http://evil.example/sessions", 401},
		"a forwarded host that is none":          {proxied, "/sessions", asked("a b"), "GET /sessions", 200},
		"other endpoints have no original":       {proxied, "/sessions", original, "PUT https://api.example/search", 401},
		"verify itself":                          {proxied, verifyPath, anonymous, "GET " + verifyPath, 200},
		"verify for a proxy, X-Original":         {proxied, verifyPath + "?scope=read", original, "PUT https://api.example/search", 200},
		"verify for a proxy, not its own URL":    {proxied, verifyPath, original, "GET https://api.example" + verifyPath, 401},
		"verify for a proxy, another method":     {proxied, verifyPath, original, "GET https://api.example/search", 401},
		"verify for a proxy, another path":       {proxied, verifyPath, original, "PUT https://api.example/search/", 401},
		"verify for a proxy that is not trusted": {direct, verifyPath, original, "PUT https://api.example/search", 401},
		"authorize for a proxy":                  {proxied, authorizePath, original, "PUT https://api.example/search", 200},
		"verify, X-Forwarded":                    {proxied, verifyPath, posted, "POST https://api.example/a%2Fb", 200},
		"verify, a whole URL":                    {proxied, verifyPath, whole("https://api.example:443/a?x"), "GET https://api.example/a", 200},
		"verify, two kinds of headers":           {proxied, verifyPath, cheap, "PUT https://api.example/search", 401},
		"verify, two kinds, the other one":       {proxied, verifyPath, allOf(original, posted), "POST https://api.example/a%2Fb", 401},
		"verify, a URI and a URL":                {proxied, verifyPath, aURL, "PUT https://api.example/cheap", 401},
		"verify, one header twice":               {proxied, verifyPath, twice, "PUT https://api.example/search", 401},
		"Envoy's path":                           {proxied, verifyPath + "/a%20b?q", overTLS("api.example"), "GET https://api.example/a%20b", 200},
		"Envoy's path, not trusted":              {direct, verifyPath + "/search", anonymous, "GET /search", 401},
		"Envoy's path, not trusted, as it is":    {direct, verifyPath + "/search", anonymous, "GET " + verifyPath + "/search", 200},

		"the issuer's host":                     {listed, "/sessions", overTLS("remit.example"), "GET " + public + "/sessions", 200},
		"the issuer's host, whatever the proxy": {listed, "/sessions", overTLS("evil.example"), "GET " + public + "/sessions", 200},
		"the issuer's host, another port":       {listed, "/sessions", asked("remit.example:8080"), "GET http://remit.example:8080/sessions", 200},
		"a host that ends like it":              {listed, "/sessions", overTLS("evilremit.example"), "GET https://evilremit.example/sessions", 401},
		"a host below it":                       {listed, "/sessions", overTLS("evil.remit.example"), "GET https://evil.remit.example/sessions", 401},
		"a listed host":                         {listed, "/sessions", overTLS("API.example"), "GET https://api.example/sessions", 200},
		"a listed host, any port":               {listed, "/sessions", asked("api.example:81"), "GET http://api.example:81/sessions", 200},
		"a listed port":                         {listed, "/sessions", overTLS("remit.internal:8443"), "GET https://remit.internal:8443/sessions", 200},
		"a listed host, another port":           {listed, "/sessions", overTLS("remit.internal"), "GET https://remit.internal/sessions", 401},
		"a listed address":                      {listed, "/sessions", asked("[2001:db8:0::1]"), "GET http://[2001:db8:0::1]/sessions", 200},
		"localhost":                             {listed, "/sessions", asked("localhost:8080"), "GET http://localhost:8080/sessions", 200},
		"this address":                          {listed, "/sessions", asked("[::1]:8080"), "GET http://[::1]:8080/sessions", 200},
		"another host":                          {listed, "/sessions", overTLS("evil.example"), "GET https://evil.example/sessions", 401},
		"a proxy's host":                        {listed, verifyPath, whole("https://api.example/x"), "GET https://api.example/x", 200},
		"a proxy's other host":                  {listed, verifyPath, whole("https://evil.example/x"), "GET https://evil.example/x", 401},
		"a proxy's other host, by a path":       {listed, verifyPath, allOf(whole("/x"), asked("evil.example")), "GET http://evil.example/x", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := onMiniredis(t, test.with).newTenant().holding("EdDSA")
			access, session := h.exchange().access, header("X-Session-Id", h.newSession(nil))
			method, url, _ := strings.Cut(test.proof, " ")
			if strings.HasPrefix(url, "/") {
				url = h.url(url)
			}
			p := prover.Proof{Method: method, URL: url, Token: access}
			r := h.get(test.path, header("Authorization", "DPoP "+access), withProof(h.key.Prove(p)), session, test.headers).is(test.want)
			if test.want == 401 {
				r.refused(401, "invalid_dpop_proof")
			}
			if at, found := strings.CutSuffix(url, "/sessions"); found && !strings.HasSuffix(at, "/v1") {
				p = prover.Proof{Method: "POST", URL: at + "/v1/auth/token"}
				h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}, withProof(h.key.Prove(p)), test.headers).
					is(map[int]int{200: 200, 401: 400}[test.want])
			}
		})
	}
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

// A thief of a bound token gets none for it that is bound to another key, or to none.
func TestABoundTokenIsExchangedWithAProofOfItsKeyOnly(t *testing.T) {
	onEach(t, (*client).newDelegation, func(t *testing.T, d delegation) {
		h, thief := holder{d.tenant, prover.New("ES256")}, holder{d.tenant, prover.New("ES256")}
		ask := func(subject string, options ...option) *response {
			return h.postForm("/oauth2/token", form("grant_type", exchangeGrant, "subject_token", subject,
				"subject_token_type", accessTokenType, "session_id", d.child), options...)
		}
		bound, once := h.exchange().access, h.at("/oauth2/token")
		ask(bound).refusedOAuth(400, "invalid_dpop_proof")
		ask(bound, thief.at("/oauth2/token")).refusedOAuth(400, "invalid_dpop_proof")
		granted := ask(bound, once).is(200).has(fields{"token_type": "DPoP"})
		ask(bound, once).refusedOAuth(400, "invalid_dpop_proof")
		delegated := granted.text("access_token")
		path := "/v1/sessions/" + d.child
		h.get(path, h.proven(delegated, "GET", path)).is(200)
		h.get(path, asAgent(delegated)).refused(401, "invalid_token")
		h.get(path, header("Authorization", "DPoP "+delegated)).refused(401, "invalid_dpop_proof")
		h.get(verifyPath, h.proven(delegated, "GET", verifyPath)).is(200)
		for _, access := range []string{delegated, ask(d.planner.access, h.at("/oauth2/token")).is(200).text("access_token")} {
			h.boundTo(access, h.key.Thumbprint())
		}
		h.postForm("/oauth2/revoke", form("token", delegated), byBasic(h.agent)).is(200) // which wants no proof
		h.get(verifyPath, h.proven(delegated, "GET", verifyPath)).refused(401, "invalid_token")
	})
}

func TestAnAgentThatRequiresProofsGetsAndUsesBoundTokensOnly(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
		before, bound := h.tenant.exchange(), h.exchange()
		session, transaction := h.newSession(nil), h.begin(nil)
		path := "/v1/agents/" + h.agent.id
		h.patch(path, fields{"dpop_required": true}, asKey(h.tenant.key)).is(200)

		refused := h.post("/v1/auth/token", fields{"agent_id": h.agent.id, "secret": h.agent.secret}).refused(401, "dpop_required")
		if got := refused.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, `DPoP realm="remit"`) || !strings.HasSuffix(got, dpopAlgorithms) {
			t.Errorf("WWW-Authenticate %q", got)
		}
		h.post("/v1/auth/refresh", fields{"refresh_token": before.refresh}).refused(401, "dpop_required")
		h.grant().refusedOAuth(400, "invalid_dpop_proof", own("dpop_required"))
		h.renew(before.refresh).refusedOAuth(400, "invalid_dpop_proof", own("dpop_required"))
		h.refuses(before.access, session, transaction, 401, "invalid_token")
		h.get("/sessions", h.proven(bound.access, "GET", "/sessions")).is(200)
		h.post("/v1/auth/refresh", fields{"refresh_token": before.refresh}, h.at("/v1/auth/refresh")).is(200)
		h.post("/v1/auth/introspect", fields{"token": before.access}, asKey(h.tenant.key)).is(200).inactive()
		// A client that authenticates presents no access token, so none that is bound to a key can be wanted of it.
		for _, token := range []string{bound.refresh, before.access} {
			h.postForm("/oauth2/revoke", form("token", token), byBasic(h.agent)).is(200)
		}
		h.get("/sessions", h.proven(bound.access, "GET", "/sessions")).refused(401, "invalid_token")
		fresh := h.exchange()
		h.patch(path, fields{"dpop_required": false}, asKey(h.tenant.key)).is(200)
		h.get("/sessions", asAgent(before.access)).refused(401, "invalid_token") // it was revoked
		h.get("/sessions", asAgent(fresh.access)).refused(401, "invalid_token")
		h.get("/sessions", asAgent(h.tenant.exchange().access)).is(200)
	})
}

// A proof costs more than anything else in such a request, and a sender may make as many as he likes.
func TestAProofIsNotVerifiedWhereNoLimitCountsFailures(t *testing.T) {
	onEach(t, (*client).newHolder, func(t *testing.T, h holder) {
		forged := h.key.Prove(h.proof("POST", "/oauth2/token"))
		forged = forged[:len(forged)-8] + strings.Repeat("A", 8)
		foreign := []string{"grant_type", exchangeGrant, "subject_token_type", accessTokenType, "session_id", h.agent.id, "subject_token", "a.b.c"}
		for code, forms := range map[string][][]string{
			"invalid_request":        {nil, {"grant_type", "refresh_token"}, foreign},
			"unsupported_grant_type": {{"grant_type", "password"}},
			"invalid_dpop_proof":     {{"grant_type", "client_credentials"}},
		} {
			for _, pairs := range forms {
				h.postForm("/oauth2/token", byPost(h.agent, pairs...), withProof(forged)).refusedOAuth(400, code)
			}
		}
	})
}
