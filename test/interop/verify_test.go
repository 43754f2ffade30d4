package interop

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	zitadel "github.com/zitadel/oidc/v3/pkg/client"
	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/client/rs"
	zitadeltokens "github.com/zitadel/oidc/v3/pkg/oidc"
)

// The tests of this file verify access tokens like a resource server that knows only the service's URL: with the published
// keys.

// accessClaims are the claims of docs/oauth.md that go-oidc does not read itself.
type accessClaims struct {
	Agent        string   `json:"agent_id"`
	Organization string   `json:"org_id"`
	Scopes       []string `json:"scopes"`
	ID           string   `json:"jti"`
}

// goVerifier returns a go-oidc verifier for access tokens whose audience is the issuer, as for a client that names no resource.
func (s *service) goVerifier(t *testing.T, issuer string, algorithms ...string) *oidc.IDTokenVerifier {
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(t.Context(), httpClient), s.URL+"/.well-known/jwks.json")
	return oidc.NewVerifier(issuer, keys, &oidc.Config{ClientID: issuer, SupportedSigningAlgs: algorithms})
}

func TestGoVerifierAcceptsTokensOfEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for algorithm, start := range map[string]func(*testing.T) *service{
		oidc.EdDSA: sharedService,
		oidc.ES256: func(t *testing.T) *service { return startServiceSigning(t, "ES256") },
		oidc.RS256: func(t *testing.T) *service { return startServiceSigning(t, "RS256") },
	} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			org := newOrganization(t, start(t))
			scout := org.newAgent(t, "read", "write")
			raw := org.accessToken(t, scout)
			verified, err := org.service.goVerifier(t, org.service.URL, algorithm).Verify(t.Context(), raw)
			if err != nil {
				t.Fatal(err)
			}
			var claims accessClaims
			if err := verified.Claims(&claims); err != nil {
				t.Fatal(err)
			}
			if verified.Subject != scout.ID || claims.Agent != scout.ID || claims.Organization != org.ID ||
				strings.Join(claims.Scopes, " ") != "read write" || claims.ID == "" {
				t.Errorf("the claims are %q, %+v", verified.Subject, claims)
			}
			if lifetime := verified.Expiry.Sub(verified.IssuedAt); lifetime != time.Hour {
				t.Errorf("the lifetime is %s", lifetime)
			}
			if kind := headerOf(t, raw).Type; kind != "at+jwt" { // RFC 9068 §2.1
				t.Errorf("the type is %q", kind)
			}
		})
	}
}

func TestGoVerifierRefusesTokensForAnother(t *testing.T) {
	t.Parallel()
	org := newOrganization(t, sharedService(t))
	raw := org.tokenFor(t, org.newAgent(t, "read"), "https://mail.example/mcp")
	if _, err := org.service.goVerifier(t, org.service.URL, oidc.EdDSA).Verify(t.Context(), raw); err == nil || !strings.Contains(err.Error(), "audience") {
		t.Errorf("the error is %v, want one about the audience", err)
	}
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(t.Context(), httpClient), org.service.URL+"/.well-known/jwks.json")
	if _, err := oidc.NewVerifier(org.service.URL, keys, &oidc.Config{ClientID: "https://mail.example/mcp", SupportedSigningAlgs: []string{oidc.EdDSA}}).Verify(t.Context(), raw); err != nil {
		t.Errorf("the one that it is for refuses it: %v", err)
	}
}

func TestGoVerifierRefusesTokensOfAnotherService(t *testing.T) {
	t.Parallel()
	here, elsewhere := sharedService(t), startService(t)
	org := newOrganization(t, elsewhere)
	foreign := org.accessToken(t, org.newAgent(t, "read"))
	if _, err := elsewhere.goVerifier(t, elsewhere.URL, oidc.EdDSA).Verify(t.Context(), foreign); err != nil {
		t.Fatalf("its own service refuses the token: %v", err)
	}
	for reason, verifier := range map[string]*oidc.IDTokenVerifier{
		"failed to verify signature":     here.goVerifier(t, elsewhere.URL, oidc.EdDSA),
		"issued by a different provider": elsewhere.goVerifier(t, here.URL, oidc.EdDSA),
		"unexpected signature algorithm": elsewhere.goVerifier(t, elsewhere.URL, oidc.RS256),
	} {
		if _, err := verifier.Verify(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("the error is %v, want %s", err, reason)
		}
	}
}

// header is the JOSE header of a token.
type header struct {
	Type string `json:"typ"`
}

func headerOf(t *testing.T, raw string) header {
	t.Helper()
	first, _, _ := strings.Cut(raw, ".")
	text, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		t.Fatal(err)
	}
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// By discovery (OpenID Connect Discovery 1.0 §4) these libraries know nothing but the issuer: go-oidc also takes the algorithms from there.
func TestGoVerifiersFindTheServiceByDiscovery(t *testing.T) {
	t.Parallel()
	for algorithm, start := range map[string]func(*testing.T) *service{
		oidc.EdDSA: sharedService,
		oidc.ES256: func(t *testing.T) *service { return startServiceSigning(t, "ES256") },
		oidc.RS256: func(t *testing.T) *service { return startServiceSigning(t, "RS256") },
	} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			org := newOrganization(t, start(t))
			scout, issuer, ctx := org.newAgent(t, "read"), org.service.URL, oidc.ClientContext(t.Context(), httpClient)
			raw := org.accessToken(t, scout)
			provider, err := oidc.NewProvider(ctx, issuer)
			if err != nil {
				t.Fatal(err)
			}
			verified, err := provider.Verifier(&oidc.Config{ClientID: issuer}).Verify(ctx, raw)
			if err != nil || verified.Subject != scout.ID {
				t.Errorf("go-oidc: %v, %v", verified, err)
			}

			found, err := zitadel.Discover(ctx, issuer, httpClient)
			if err != nil {
				t.Fatal(err)
			}
			verifier := rp.NewIDTokenVerifier(issuer, issuer, rp.NewRemoteKeySet(httpClient, found.JwksURI),
				rp.WithSupportedSigningAlgorithms(found.IDTokenSigningAlgValuesSupported...))
			if claims, err := rp.VerifyIDToken[*zitadeltokens.TokenClaims](ctx, raw, verifier); err != nil || claims.Subject != scout.ID {
				t.Errorf("zitadel/oidc: %v, %v", claims, err)
			}
			server, err := rs.NewResourceServerClientCredentials(ctx, issuer, scout.ID, scout.Secret, rs.WithClient(httpClient))
			if err != nil {
				t.Fatal(err)
			}
			described, err := rs.Introspect[*zitadeltokens.IntrospectionResponse](ctx, server, raw)
			if err != nil || !described.Active || described.Subject != scout.ID || described.ClientID != scout.ID {
				t.Errorf("zitadel/oidc: %+v, %v", described, err)
			}
		})
	}
}
