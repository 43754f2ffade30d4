package interop

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

func (s *service) goClient(of agent, style oauth2.AuthStyle, scopes ...string) *clientcredentials.Config {
	return &clientcredentials.Config{
		ClientID: of.ID, ClientSecret: of.Secret, TokenURL: s.URL + "/oauth2/token", AuthStyle: style, Scopes: scopes,
	}
}

// bounded returns a context with a client that has a timeout. golang.org/x/oauth2's own client has none.
func bounded(t *testing.T) context.Context {
	return context.WithValue(t.Context(), oauth2.HTTPClient, httpClient)
}

func TestGoClientFetchesATokenAndCallsTheAPI(t *testing.T) {
	t.Parallel()
	org := newOrganization(t, sharedService(t))
	scout := org.newAgent(t, "read", "write")
	for name, tc := range map[string]struct {
		style   oauth2.AuthStyle
		scopes  []string
		granted string
	}{
		"credentials in the header":               {oauth2.AuthStyleInHeader, nil, "read write"},
		"credentials in the form":                 {oauth2.AuthStyleInParams, nil, "read write"},
		"credentials where the server takes them": {oauth2.AuthStyleAutoDetect, nil, "read write"},
		"header, narrowed":                        {oauth2.AuthStyleInHeader, []string{"read"}, "read"},
		"form, narrowed":                          {oauth2.AuthStyleInParams, []string{"write"}, "write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := org.service.goClient(scout, tc.style, tc.scopes...)
			got := must(config.Token(bounded(t)))(t)
			if got.Type() != "Bearer" || got.Extra("scope") != tc.granted || got.RefreshToken == "" {
				t.Errorf("a %s token for %q, refresh token %q", got.Type(), got.Extra("scope"), got.RefreshToken)
			}
			if left := time.Until(got.Expiry); left < 55*time.Minute || left > time.Hour {
				t.Errorf("the token expires in %s", left)
			}
			budget := org.newSession(t, scout, 10, 5)
			client := config.Client(bounded(t))
			if status := statusOf(t, client, http.MethodGet, org.service.URL+"/sessions/"+budget.ID, ""); status != 200 {
				t.Errorf("GET of its session: %d", status)
			}
			actions := org.service.URL + "/sessions/" + budget.ID + "/actions"
			if status := statusOf(t, client, http.MethodPost, actions, `{"value_usd":0.37}`); status != 200 {
				t.Errorf("an action: %d", status)
			}
			charged := 1
			for _, scope := range []string{"read", "write"} {
				want := 403
				if strings.Contains(tc.granted, scope) {
					want, charged = 200, charged+1
				}
				if status := statusOf(t, client, http.MethodPost, actions, `{"scope":"`+scope+`"}`); status != want {
					t.Errorf("an action that requires %s: %d, want %d", scope, status, want)
				}
			}
			org.wantCharged(t, budget, charged, "0.37")
		})
	}
}

func TestGoClientRefreshes(t *testing.T) {
	t.Parallel()
	org := newOrganization(t, sharedService(t))
	scout := org.newAgent(t, "read")
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		first := must(org.service.goClient(scout, style).Token(bounded(t)))(t)
		config := oauth2.Config{ClientID: scout.ID, ClientSecret: scout.Secret,
			Endpoint: oauth2.Endpoint{TokenURL: org.service.URL + "/oauth2/token", AuthStyle: style}}
		second := must(config.TokenSource(bounded(t), &oauth2.Token{RefreshToken: first.RefreshToken}).Token())(t)
		if !second.Valid() || second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken {
			t.Errorf("refreshed to %+v", second)
		}
	}
}

func TestGoClientGetsTheErrorCode(t *testing.T) {
	t.Parallel()
	org := newOrganization(t, sharedService(t))
	scout := org.newAgent(t, "read")
	stranger := agent{ID: scout.ID, Secret: org.newAgent(t, "read").Secret}
	revoked := org.newAgent(t, "read")
	org.revoke(t, revoked)
	for name, tc := range map[string]struct {
		config *clientcredentials.Config
		code   string
	}{
		"wrong secret, header":   {org.service.goClient(stranger, oauth2.AuthStyleInHeader), "invalid_client"},
		"wrong secret, form":     {org.service.goClient(stranger, oauth2.AuthStyleInParams), "invalid_client"},
		"revoked agent":          {org.service.goClient(revoked, oauth2.AuthStyleInHeader), "invalid_client"},
		"one of two scopes":      {org.service.goClient(scout, oauth2.AuthStyleInHeader, "read", "write"), "invalid_scope"},
		"an id that is no agent": {org.service.goClient(agent{"someone", scout.Secret}, oauth2.AuthStyleInHeader), "invalid_client"},
	} {
		if _, err := tc.config.Token(bounded(t)); !refusedWith(err, tc.code) {
			t.Errorf("%s: %v; want %s", name, err, tc.code)
		}
	}
}

func statusOf(t *testing.T, client *http.Client, method, url, body string) int {
	t.Helper()
	request := must(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response := must(client.Do(request))(t)
	readAll(t, response)
	return response.StatusCode
}
