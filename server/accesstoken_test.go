package server_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"remit/internal/token"
)

func TestJWKSPublishesTheSigningKey(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	r := api.get("/.well-known/jwks.json").is(200)
	if got := r.header.Get("Content-Type"); got != "application/jwk-set+json" {
		t.Errorf("Content-Type %q", got)
	}
	keys, _ := r.exactly(fields{"keys": matcher{"an array", isArray}}).object()["keys"].([]any)
	if len(keys) != 1 {
		t.Fatalf("%d keys, want 1: %s", len(keys), r.body)
	}
	published := fields(keys[0].(map[string]any))
	want := fields{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": someText,
		"x": matchText("32 bytes", `^[0-9A-Za-z_-]{43}$`)}
	if found := differences(published, want); found != "" {
		t.Errorf("the key: %s", found)
	}
}

func isArray(value any) bool { _, ok := value.([]any); return ok }

// An independent implementation, given the published key alone, must read what DESIGN §2.3 says and nothing else.
func TestAccessTokensCarryTheirClaimsForAnyVerifier(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		first := w.exchange()
		second := pairIn(w.post("/v1/auth/refresh", fields{"refresh_token": first.refresh}).is(200))
		var ids, families []any
		for _, access := range []string{first.access, second.access} {
			parsed, claims := verify(t, w.client, access)
			kid, _ := w.publishedKey(t)
			header := fields{"alg": "EdDSA", "typ": "at+jwt", "kid": kid}
			if found := differences(parsed.Header, header); found != "" {
				t.Errorf("header: %s", found)
			}
			want := fields{
				"iss": issuer, "sub": w.agent.id, "agent_id": w.agent.id, "org_id": w.org,
				"scopes": list(agentScopes...), "jti": anID, "fam": anID,
				"client_id": w.agent.id, "aud": issuer,
				"iat": num(unix(t, claims, "iat")), "exp": num(unix(t, claims, "iat") + 3600),
			}
			if found := differences(claims, want); found != "" {
				t.Errorf("claims: %s", found)
			}
			if age := time.Since(time.Unix(unix(t, claims, "iat"), 0)); age.Abs() > time.Minute {
				t.Errorf("issued %s ago", age)
			}
			ids, families = append(ids, claims["jti"]), append(families, claims["fam"])
		}
		if ids[0] == ids[1] {
			t.Error("two tokens have the same jti")
		}
		if families[0] != families[1] {
			t.Error("a refresh changed the family")
		}
		if _, other := verify(t, w.client, w.exchange().access); other["fam"] == families[0] {
			t.Error("two exchanges have the same family")
		}
	})
}

func TestAnAgentWithoutScopesGetsAnEmptyArrayOfThem(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		mute := w.post("/v1/agents", fields{"name": "mute", "scopes": list()}, asKey(w.key)).is(201)
		tokens := w.exchangeFor(agent{mute.text("id"), mute.text("secret")})
		if _, claims := verify(t, w.client, tokens.access); !isArray(claims["scopes"]) {
			t.Errorf("scopes are %v, want []", claims["scopes"])
		}
		w.get("/sessions", asAgent(tokens.access)).is(200)
	})
}

// publishedKey returns the id and the key of the only entry in the JWKS.
func (c *client) publishedKey(t *testing.T) (kid string, key ed25519.PublicKey) {
	t.Helper()
	keys := c.get("/.well-known/jwks.json").is(200).object()["keys"].([]any)
	published := keys[0].(map[string]any)
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

func TestEveryWrongAccessTokenIsRefusedAlike(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		tokens, session := w.exchange(), w.newSession(nil)
		foreign := onMiniredis(t, setup{}).newTenant().exchange()
		transaction := w.begin(nil)
		endpoints := slices.Concat(endpointsOfBoth(w, session, transaction), endpointsOfAgents(w, session, transaction), []endpoint{
			rollbackOf(transaction), {"POST", "/v1/auth/revoke", fields{"refresh_token": tokens.refresh}},
		})
		for _, e := range endpoints {
			w.ask(e.method, e.path, e.body, asAgent("")).refused(401, "missing_credentials")
			refused := w.ask(e.method, e.path, e.body, asAgent(tokens.access+"A")).refused(401, "invalid_token")
			for name, access := range map[string]string{
				"no JWT":               "nonsense",
				"of another service":   foreign.access,
				"a refresh token":      tokens.refresh,
				"another signature":    otherSignature(tokens.access),
				"without a signature":  tokens.access[:lastDot(tokens.access)+1],
				"with alg none":        algNone(tokens.access),
				"longer than 3072":     tokens.access + long(3072),
				"with a space at last": tokens.access + " x",
			} {
				if r := w.ask(e.method, e.path, e.body, asAgent(access)); r.withoutRequestID() != refused.withoutRequestID() {
					t.Errorf("%s: %s: %s, want %s", e.path, name, r.withoutRequestID(), refused.withoutRequestID())
				}
			}
			for _, key := range []string{w.key, w.key + "A"} {
				r := w.ask(e.method, e.path, e.body, asAgent(key)).refused(401, "invalid_token")
				if got := r.detail(); got != "an API key was sent as an access token: send it in X-API-Key" || strings.Contains(string(r.body), key[4:]) {
					t.Errorf("%s: an API key: %s", e.path, r.body)
				}
			}
		}
		w.get("/sessions/"+session, asAgent(tokens.access)).is(200)
	})
}

func TestTheBearerSchemeIsReadInAnyCaseAndNoOtherScheme(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	access := w.exchange().access
	for scheme, status := range map[string]int{
		"Bearer": 200, "bearer": 200, "BEARER": 200, "Basic": 401, "Token": 401, "BearerX": 401, "": 401,
	} {
		if got := w.get("/sessions", header("Authorization", scheme+" "+access)).status; got != status {
			t.Errorf("scheme %q: %d, want %d", scheme, got, status)
		}
	}
}

func TestAnAccessTokenEndsWithItsHour(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		of := must(api.on.keyring.ParseRefresh(w.exchange().refresh))(t)
		for age, status := range map[time.Duration]int{
			0: 200, 59 * time.Minute: 200, time.Hour: 401, time.Hour + time.Second: 401, 24 * time.Hour: 401,
		} {
			access := must(api.on.keyring.SignAccess(token.Access{
				Agent: of.Agent, Organization: uuid.MustParse(w.org), Family: of.Family, Issued: time.Now().Add(-age),
				Client: of.Agent, Audience: []string{api.on.keyring.Issuer()},
			}))(t)
			if got := w.get("/sessions", asAgent(access)).status; got != status {
				t.Errorf("issued %s ago: %d, want %d", age, got, status)
			}
		}
	})
}
