package server

import (
	"net/http"
	"net/url"
	"testing"

	"remit/internal/token"
	"remit/test/suite"
)

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
		response := suite.Must(client.PostForm("http://"+s.address+path, url.Values{"grant_type": {"client_credentials"}, "client_id": {agent},
			"client_secret": {token.NewAgentSecret()}, "refresh_token": {refresh}, "token": {refresh}}))(t)
		_ = response.Body.Close()
		return response.StatusCode
	}
	for _, want := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} { // the second round is one too many
		for _, path := range []string{"/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"} {
			if status := guess(path); status != want {
				t.Errorf("%s answers %d, want %d", path, status, want)
			}
		}
	}
	s.oauthRefresh(t, client, agent, secret, refresh, 200)
}
