package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/server/internal/access"
	"remit/test/prover"
)

// newSigner creates an organization with an agent that signs assertions.
func (r runningServer) newSigner(t *testing.T, client *http.Client) (agent string, key *prover.Key) {
	t.Helper()
	key = prover.New("EdDSA")
	jwk := must(json.Marshal(key.JWK()))(t)
	organization := r.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "")
	created := r.post(t, client, "/v1/agents", `{"name":"signer","scopes":[],"secret":false,"jwks":{"keys":[`+string(jwk)+`]}}`,
		"X-API-Key", organization.text(t, "api_key")).is(t, 201, "")
	return created.text(t, "id"), key
}

// postForm returns the status of the answer to a form.
func (r runningServer) postForm(t *testing.T, client *http.Client, path string, form url.Values) int {
	t.Helper()
	response := must(client.PostForm("http://"+r.address+path, form))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

func (r runningServer) exchangeBy(t *testing.T, client *http.Client, assertion string) int {
	t.Helper()
	return r.postForm(t, client, "/oauth2/token", url.Values{
		"grant_type": {"client_credentials"}, "client_assertion_type": {access.ClientAssertionType}, "client_assertion": {assertion}})
}

// Wrong assertions are counted as wrong secrets are. Right ones by a key that succeeded here pass, so that no stranger at the agent's
// address shuts it out.
func TestWrongAssertionsAreLimitedAndKnownKeysPass(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 4}})
	client := from(t, "")
	agent, key := s.newSigner(t, client)
	neighbour, theirs := s.newSigner(t, client)
	sign := func(agent string, key *prover.Key) string { return s.assertionOf(t, agent, key) }
	want := func(what, assertion string, status int) {
		t.Helper()
		wantEqual(t, what, s.exchangeBy(t, client, assertion), status)
	}
	used := sign(agent, key)
	want("the first", used, 200)
	for range 4 {
		want("another's key", sign(agent, theirs), 401)
	}
	want("another's key again", sign(agent, theirs), 429)
	want("the agent's own key", sign(agent, key), 200)
	want("a neighbour", sign(neighbour, theirs), 200)
	want("one that was used", used, 401) // it passes the limit, and then its key no longer does
	want("the agent's own key after that", sign(agent, key), 429)
	s.clock.advance(30 * time.Second)
	want("later", sign(agent, key), 200)
	want("altered", strings.Replace(sign(agent, key), ".", ".AAAA", 1), 401)
}

// No limit counts such requests, and any caller that knows the agent's id can send them.
func TestAHostWithoutKeysFillsNoLog(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	s := runServer(t, "", Config{Log: slog.New(slog.NewTextHandler(log, nil))}) // reads no keys at all
	client := from(t, "")
	_, key := s.newSigner(t, client)
	organization := s.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "")
	agent := s.post(t, client, "/v1/agents", `{"name":"signer","scopes":[],"secret":false,"jwks_uri":"https://keys.example/jwks"}`,
		"X-API-Key", organization.text(t, "api_key")).is(t, 201, "").text(t, "id")
	for range 3 {
		if got := s.exchangeBy(t, client, s.assertionOf(t, agent, key)); got != 503 {
			t.Fatalf("%d, want 503", got)
		}
	}
	if text := log.String(); strings.Contains(text, "request failed") {
		t.Errorf("the log has\n%s", text)
	}
}

// assertionOf returns one of an agent, for the service, that the key signs.
func (r runningServer) assertionOf(t *testing.T, agent string, key *prover.Key) string {
	t.Helper()
	return key.Sign(map[string]any{"alg": "EdDSA"}, map[string]any{"iss": agent, "sub": agent, "aud": must(r.guard.Keys())(t).Issuer(),
		"jti": uuid.NewString(), "exp": time.Now().Unix() + 60})
}

// A former agent's refresh tokens still have a valid HMAC. Presenting spent ones must not bypass the limit.
func TestARefreshTokenThatHasFailedIsLimited(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 3}})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	revoked := s.exchange(t, client, agent, secret).is(t, 200, "")
	s.post(t, client, "/v1/auth/revoke", `{"refresh_token":"`+revoked.text(t, "refresh_token")+`"}`,
		"Authorization", "Bearer "+revoked.text(t, "access_token")).is(t, 200, "")
	live := s.exchange(t, client, agent, secret).is(t, 200, "").text(t, "refresh_token")
	for range 3 {
		s.refresh(t, client, revoked.text(t, "refresh_token")).is(t, 401, "invalid_refresh_token")
	}
	s.refresh(t, client, revoked.text(t, "refresh_token")).is(t, 429, "rate_limited")
	s.refresh(t, client, live).is(t, 200, "")
}

// A refresh token beside a wrong secret must not make guesses free, on any endpoint of OAuth.
func TestRefreshTokensDoNotBypassTheLimitOnSecretGuesses(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{Limits: Limits{FailedAuthPerMinute: 3}})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	refresh := s.exchange(t, client, agent, secret).is(t, 200, "").text(t, "refresh_token")
	guess := func(path string) int {
		return s.postForm(t, client, path, url.Values{"grant_type": {"client_credentials"}, "client_id": {agent},
			"client_secret": {token.NewAgentSecret()}, "refresh_token": {refresh}, "token": {refresh}})
	}
	for _, want := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} { // the second round is one too many
		for _, path := range []string{"/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"} {
			wantEqual(t, path, guess(path), want)
		}
	}
	s.oauthRefresh(t, client, agent, secret, refresh, 200)
}
