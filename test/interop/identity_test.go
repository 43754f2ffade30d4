package interop

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/oauth2"
)

const (
	tools    = "https://tools.example/mcp" // a resource
	assertsJ = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	grantJ   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	grantX   = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// signer is an Ed25519 key, with which golang-jwt signs.
type signer struct{ private ed25519.PrivateKey }

func newSigner(t *testing.T) signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	noError(t, err)
	return signer{private}
}

// jwks is the public part.
func (s signer) jwks() map[string]any {
	x := base64.RawURLEncoding.EncodeToString(s.private.Public().(ed25519.PublicKey))
	return map[string]any{"keys": []any{map[string]any{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "k1"}}}
}

// signed returns a JWT of five minutes.
func (s signer) signed(t *testing.T, issuer, subject, audience string) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: issuer, Subject: subject, Audience: jwt.ClaimStrings{audience}, ID: uuid.NewString(),
		IssuedAt: jwt.NewNumericDate(time.Now()), ExpiresAt: jwt.NewNumericDate(time.Now().Add(5 * time.Minute)),
	})
	token.Header["kid"] = "k1"
	return must(token.SignedString(s.private))(t)
}

func (o organization) newAgentWith(t *testing.T, fields map[string]any) agent {
	t.Helper()
	fields["name"] = "scout"
	var a agent
	o.call(t, http.MethodPost, "/v1/agents", fields, &a)
	return a
}

func refusedWith(err error, code string) bool {
	var refused *oauth2.RetrieveError
	return errors.As(err, &refused) && refused.ErrorCode == code
}

func TestGoClientAsksForTokensForResources(t *testing.T) {
	t.Parallel()
	org := newOrganization(t, sharedService(t))
	scout := org.newAgentWith(t, map[string]any{"scopes": []string{"read"}, "audiences": []string{tools, "urn:b"}})
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		for _, resources := range [][]string{nil, {tools}, {org.service.URL, tools, "urn:b"}} {
			config := org.service.goClient(scout, style)
			config.EndpointParams = url.Values{"resource": resources}
			got := must(config.Token(bounded(t)))(t)
			if resources == nil {
				resources = []string{org.service.URL}
			}
			for _, audience := range []string{org.service.URL, tools, "urn:b", tools + "/", "https://elsewhere.example/"} {
				verified, err := org.service.goVerifier(t, org.service.URL, audience, oidc.EdDSA).Verify(t.Context(), got.AccessToken)
				isFor := slices.Contains(resources, audience)
				if isFor && (err != nil || !slices.Equal(verified.Audience, resources)) || !isFor && (err == nil || !strings.Contains(err.Error(), "audience")) {
					t.Errorf("a token for %q, verified for %s: %v", resources, audience, err)
				}
			}
		}
	}
	config := org.service.goClient(scout, oauth2.AuthStyleInHeader)
	config.EndpointParams = url.Values{"resource": {"https://elsewhere.example/"}}
	if _, err := config.Token(bounded(t)); !refusedWith(err, "invalid_target") {
		t.Errorf("elsewhere: %v", err)
	}
}

// golang.org/x/oauth2 signs no assertions itself, but sends those that the program signs. Its jwt package cannot be used: it
// has no client_id, and the agent must be named.
func TestGoClientSendsAnAssertion(t *testing.T) {
	t.Parallel()
	org, own := newOrganization(t, sharedService(t)), newSigner(t)
	scout := org.newAgentWith(t, map[string]any{"scopes": []string{"read"}, "jwks": own.jwks(), "secret": false})
	for audience, works := range map[string]bool{org.service.URL: true, org.service.URL + "/oauth2/token": true, "https://elsewhere.example": false} {
		config := org.service.goClient(scout, oauth2.AuthStyleInParams)
		config.EndpointParams = url.Values{"client_assertion_type": {assertsJ}, "client_assertion": {own.signed(t, scout.ID, scout.ID, audience)}}
		got, err := config.Token(bounded(t))
		if works && (err != nil || got.RefreshToken == "") || !works && !refusedWith(err, "invalid_client") {
			t.Errorf("for %s: %v", audience, err)
		}
		if _, err := config.Token(bounded(t)); !refusedWith(err, "invalid_client") {
			t.Errorf("a second time: %v", err)
		}
	}
}

func TestGoClientExchangesItsPlatformsToken(t *testing.T) {
	t.Parallel()
	org, platform := newOrganization(t, sharedService(t)), newSigner(t)
	scout := org.newAgentWith(t, map[string]any{"scopes": []string{"read"}, "secret": false})
	org.call(t, http.MethodPost, "/v1/trusted-issuers", map[string]any{
		"issuer": "https://ci.example", "jwks": platform.jwks(),
		"rules": []any{map[string]any{"agent_id": scout.ID, "claims": map[string]any{"sub": "repo:acme/shop:*"}}},
	}, &struct{}{})
	for subject, works := range map[string]bool{"repo:acme/shop:main": true, "repo:acme/shopping": false} {
		config := org.service.goClient(scout, oauth2.AuthStyleInParams)
		config.EndpointParams = url.Values{"grant_type": {grantJ}, "assertion": {platform.signed(t, "https://ci.example", subject, org.service.URL)}}
		for range 2 { // it is presented again by design
			got, err := config.Token(bounded(t))
			if works && (err != nil || got.RefreshToken != "" || got.Extra("scope") != "read") || !works && !refusedWith(err, "invalid_grant") {
				t.Errorf("%s: %v", subject, err)
			}
		}
	}
}

func TestGoClientExchangesItsTokenForAChildSessions(t *testing.T) {
	t.Parallel()
	org := newOrganization(t, sharedService(t))
	planner, helper := org.newAgent(t, "read", "sessions:delegate"), org.newAgent(t, "read")
	parent := org.newSession(t, planner, 10, 5)
	var child session
	org.call(t, http.MethodPost, "/v1/sessions", map[string]any{
		"agent_id": helper.ID, "parent_session_id": parent.ID, "max_actions": 2, "max_value_usd": 1,
	}, &child)
	config := org.service.goClient(planner, oauth2.AuthStyleInHeader)
	config.EndpointParams = url.Values{
		"grant_type": {grantX}, "subject_token": {org.accessToken(t, planner)},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"}, "session_id": {child.ID},
	}
	got := must(config.Token(bounded(t)))(t)
	if got.RefreshToken != "" || got.Extra("issued_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
		t.Errorf("%+v", got)
	}
	client := oauth2.NewClient(bounded(t), oauth2.StaticTokenSource(got))
	if status := statusOf(t, client, http.MethodPost, org.service.URL+"/sessions/"+child.ID+"/actions", "{}"); status != 200 {
		t.Errorf("an action of the child: %d", status)
	}
	if status := statusOf(t, client, http.MethodGet, org.service.URL+"/sessions/"+parent.ID, ""); status != 404 {
		t.Errorf("the parent: %d", status)
	}
}
