package interop

import (
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

// goVerifier returns a go-oidc verifier for access tokens of the issuer, with the service's keys.
func (s *service) goVerifier(t *testing.T, issuer, audience string, algorithms ...string) *oidc.IDTokenVerifier {
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(t.Context(), httpClient), s.URL+"/.well-known/jwks.json")
	return oidc.NewVerifier(issuer, keys, &oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms})
}

func TestGoVerifierAcceptsTokensOfEveryAlgorithm(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{oidc.EdDSA, oidc.ES256, oidc.RS256} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			org := newOrganization(t, serviceSigning(t, algorithm))
			scout := org.newAgent(t, "read", "write")
			raw := org.accessToken(t, scout)
			verified := must(org.service.goVerifier(t, org.service.URL, org.service.URL, algorithm).Verify(t.Context(), raw))(t)
			var claims accessClaims
			noError(t, verified.Claims(&claims))
			if verified.Subject != scout.ID || claims.Agent != scout.ID || claims.Organization != org.ID ||
				strings.Join(claims.Scopes, " ") != "read write" || claims.ID == "" {
				t.Errorf("the claims are %q, %+v", verified.Subject, claims)
			}
			if lifetime := verified.Expiry.Sub(verified.IssuedAt); lifetime != time.Hour {
				t.Errorf("the lifetime is %s", lifetime)
			}
			org.verifyByDiscovery(t, scout, raw)
		})
	}
}

// verifyByDiscovery verifies a token by libraries that know nothing but the issuer (OpenID Connect Discovery 1.0 §4): go-oidc also takes the
// algorithms from there.
func (o organization) verifyByDiscovery(t *testing.T, scout agent, raw string) {
	t.Helper()
	issuer, ctx := o.service.URL, oidc.ClientContext(t.Context(), httpClient)
	verified, err := must(oidc.NewProvider(ctx, issuer))(t).Verifier(&oidc.Config{ClientID: issuer}).Verify(ctx, raw)
	if err != nil || verified.Subject != scout.ID {
		t.Errorf("go-oidc: %v, %v", verified, err)
	}
	found := must(zitadel.Discover(ctx, issuer, httpClient))(t)
	verifier := rp.NewIDTokenVerifier(issuer, issuer, rp.NewRemoteKeySet(httpClient, found.JwksURI),
		rp.WithSupportedSigningAlgorithms(found.IDTokenSigningAlgValuesSupported...))
	if claims, err := rp.VerifyIDToken[*zitadeltokens.TokenClaims](ctx, raw, verifier); err != nil || claims.Subject != scout.ID {
		t.Errorf("zitadel/oidc: %v, %v", claims, err)
	}
	server := must(rs.NewResourceServerClientCredentials(ctx, issuer, scout.ID, scout.Secret, rs.WithClient(httpClient)))(t)
	described, err := rs.Introspect[*zitadeltokens.IntrospectionResponse](ctx, server, raw)
	if err != nil || !described.Active || described.Subject != scout.ID || described.ClientID != scout.ID {
		t.Errorf("zitadel/oidc: %+v, %v", described, err)
	}
}

func TestGoVerifierRefusesTokensOfAnotherService(t *testing.T) {
	t.Parallel()
	here, elsewhere := sharedService(t), startService(t)
	org := newOrganization(t, elsewhere)
	foreign := org.accessToken(t, org.newAgent(t, "read"))
	must(elsewhere.goVerifier(t, elsewhere.URL, elsewhere.URL, oidc.EdDSA).Verify(t.Context(), foreign))(t)
	for reason, verifier := range map[string]*oidc.IDTokenVerifier{
		"failed to verify signature":     here.goVerifier(t, elsewhere.URL, elsewhere.URL, oidc.EdDSA),
		"issued by a different provider": elsewhere.goVerifier(t, here.URL, here.URL, oidc.EdDSA),
		"unexpected signature algorithm": elsewhere.goVerifier(t, elsewhere.URL, elsewhere.URL, oidc.RS256),
	} {
		if _, err := verifier.Verify(t.Context(), foreign); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("the error is %v, want %s", err, reason)
		}
	}
}
