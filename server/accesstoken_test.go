package server_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

func isArray(value any) bool { _, ok := value.([]any); return ok }

// An independent implementation, given the published key alone, must read what DESIGN §2.3 says and nothing else.
func TestAccessTokensCarryTheirClaimsForAnyVerifier(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		kid, _ := w.publishedKey(t)
		first := w.exchange()
		second := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200))
		var ids []any
		for _, access := range []string{first.access, second.access} {
			parsed, claims := verify(t, w.client, access)
			wantFields(t, "header", parsed.Header, fields{"alg": "EdDSA", "typ": "at+jwt", "kid": kid})
			want := fields{
				"iss": issuer, "sub": w.agent.id, "agent_id": w.agent.id, "org_id": w.org,
				"scopes": list(agentScopes...), "jti": anID, "fam": first.family(), "client_id": w.agent.id, "aud": issuer,
				"iat": aboutSecondsIn(0), "exp": num(unix(t, claims, "iat") + 3600),
			}
			wantFields(t, "claims", claims, want)
			ids = append(ids, claims["jti"])
		}
		if ids[0] == ids[1] {
			t.Error("two tokens have the same jti")
		}
		if w.exchange().family() == first.family() {
			t.Error("two exchanges have the same family")
		}
		mute := w.post("/v1/agents", fields{"name": "mute", "scopes": list()}, asKey(w.key)).is(201)
		tokens := w.exchangeFor(agent{mute.text("id"), mute.text("secret")})
		if _, claims := verify(t, w.client, tokens.access); !isArray(claims["scopes"]) {
			t.Errorf("scopes of an agent without any are %v, want []", claims["scopes"])
		}
		w.get("/sessions", asAgent(tokens.access)).is(200)
	})
}

// publishedKey returns the id and the key of the only entry in the JWKS.
func (c *client) publishedKey(t *testing.T) (kid string, key ed25519.PublicKey) {
	t.Helper()
	r := c.get("/.well-known/jwks.json").is(200)
	published := r.exactly(fields{"keys": matcher{"an array", isArray}}).object()["keys"].([]any)[0].(map[string]any)
	if got := r.header.Get("Content-Type"); got != "application/jwk-set+json" || published["use"] != "sig" || published["alg"] != "EdDSA" {
		t.Errorf("%q: %v", got, published)
	}
	x := must(base64.RawURLEncoding.DecodeString(published["x"].(string)))(t)
	return published["kid"].(string), x
}

func verify(t *testing.T, c *client, access string) (*jwt.Token, fields) {
	t.Helper()
	claims := jwt.MapClaims{}
	parsed, err := jwt.ParseWithClaims(access, claims, func(parsed *jwt.Token) (any, error) {
		_, key := c.publishedKey(t)
		return key, nil
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding(),
		jwt.WithIssuer(issuer), jwt.WithJSONNumber(), jwt.WithLeeway(time.Second))
	if err != nil {
		t.Fatalf("%s: %v", access, err)
	}
	return parsed, fields(claims)
}

func unix(t *testing.T, claims fields, name string) int64 {
	t.Helper()
	number, ok := claims[name].(interface{ Int64() (int64, error) })
	if !ok {
		t.Fatalf("%s is %#v, not a number", name, claims[name])
	}
	return must(number.Int64())(t)
}

// That every endpoint refuses what is wrong, and how, TestEach401SaysWhichCredentialIsWanted shows.
func TestEveryWrongCredentialIsRefusedAlike(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		tokens, session := w.exchange(), w.newSession(nil)
		foreign, random := onMiniredis(t, setup{}).newTenant().exchange(), newKeyOf(uuid.MustParse(w.org))
		ask := func(as option) *response { return w.post("/sessions/"+session+"/actions", fields{}, as) }
		for _, empty := range []option{asAgent(""), asKey("")} {
			ask(empty).refused(401, "missing_credentials")
		}
		wrong := ask(asAgent(tokens.access+"A")).refused(401, "invalid_token")
		for _, access := range []string{
			"nonsense", foreign.access, tokens.refresh, otherSignature(tokens.access), tokens.access[:lastDot(tokens.access)+1],
			algNone(tokens.access), tokens.access + long(3072), tokens.access + " x",
		} {
			wantSameAnswer(t, wrong, ask(asAgent(access)))
		}
		wrong = ask(asKey(random)).refused(401, "invalid_api_key")
		for _, key := range []string{"rmk_nonsense", w.key + "0", " " + w.agent.secret, w.key[:len(w.key)-1] + "!", newKeyOf(uuid.New())} {
			wantSameAnswer(t, wrong, ask(asKey(key)))
		}
		for _, key := range []string{w.key, w.key + "A"} {
			r := ask(asAgent(key)).refused(401, "invalid_token")
			if got := r.detail(); got != "an API key was sent as an access token: send it in X-API-Key" || strings.Contains(string(r.body), key[4:]) {
				t.Errorf("%s: an API key: %s", r.what, r.body)
			}
		}
		r := ask(asKey(tokens.access)).refused(401, "invalid_api_key")
		if want := "an access token was sent in X-API-Key: send it as Authorization: Bearer"; r.detail() != want {
			t.Errorf("%s: an access token: %s", r.what, r.body)
		}
		w.charged(session, 0, 0)
	})
}

func TestBothCredentialsAtOnceAreRefusedWhereEitherWouldDo(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		session, transaction := w.newSession(nil), w.begin(nil)
		beside := both(asKey(w.key), asAgent(w.exchange().access))
		for _, e := range append(endpointsOfBoth(w, session, transaction), rollbackOf(transaction)) {
			w.ask(e.method, e.path, e.body, beside).refused(400, "invalid_request")
		}
		if s := w.session(session); s["status"] != "active" || s["action_count"] != num(0) {
			t.Errorf("a refused request was carried out: %v", s)
		}
		wantEqual[any](t, "the transaction of refused requests", w.transaction(transaction)["status"], "pending")
	})
}
