package token_test

import (
	"strings"
	"testing"

	"remit/internal/token"
)

func TestAnIssuerNameIsAnHTTPSURLOrATrustDomain(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"https://token.actions.githubusercontent.com": true, "https://gitlab.com": true, "https://accounts.google.com": true,
		"https://kubernetes.default.svc.cluster.local": true, "https://oidc.eks.eu-west-1.amazonaws.com/id/C0FFEE": true,
		"https://login.example/tenant/": true, "https://idp.example:8443": true, "http://localhost:4711": true, "http://127.0.0.1:4711/a": true,
		"http://[::1]:4711": true, "spiffe://acme.example": true, "spiffe://prod-1_a": true,
		"https://a.example/" + strings.Repeat("x", 255-len("https://a.example/")): true,
		"https://a.example/" + strings.Repeat("x", 256-len("https://a.example/")): false,
		"": false, "accounts.google.com": false, "http://idp.example": false, "http://10.0.0.1": false, "https://": false, "https:a": false,
		"https://a:b@idp.example": false, "https://idp.example?x=1": false, "https://idp.example?": false, "https://idp.example#x": false,
		"https://idp.example/a b": false, "https://idp.example/\u00e9": false, "https://idp.example/\n": false, "ftp://idp.example": false, "urn:x": false,
		"spiffe://": false, "spiffe://acme.example/": false, "spiffe://acme.example/agent": false, "spiffe://Acme.example": false,
		"spiffe://acme.example:443": false, "spiffe://a@acme.example": false, "SPIFFE://acme.example": false,
	} {
		if err := token.CheckIssuerName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAnAssertionNamesItsIssuerByIssOrByItsTrustDomain(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]string{
		"https://idp.example":  {`{"iss":"https://idp.example","sub":"a"}`, `{"iss":"https://idp.example","sub":"spiffe://acme.example/a"}`},
		"https://idp.example/": {`{"iss":"https://idp.example/","sub":"a"}`},
		"spiffe://acme.example": {
			`{"sub":"spiffe://acme.example/a"}`, `{"iss":"","sub":"spiffe://acme.example/a"}`,
			`{"iss":"spiffe://acme.example","sub":"spiffe://acme.example/a"}`,
		},
		"": {
			`{"iss":"spiffe://acme.example","sub":"spiffe://other.example/a"}`, `{"iss":"spiffe://acme.example","sub":"a"}`, `{"iss":"spiffe://acme.example"}`,
			`{"sub":"spiffe://acme.example"}`, `{"sub":"spiffe://acme.example/"}`, `{"sub":"spiffe:///a"}`, `{"sub":"spiffe://a@acme.example/a"}`,
			`{"sub":"spiffe://acme.example:443/a"}`, `{"sub":"https://acme.example/a"}`, `{}`,
		},
	} {
		for _, claims := range all {
			if got := assertionOf(t, claims).TrustedIssuer(); got != want {
				t.Errorf("%s: %q, want %q", claims, got, want)
			}
		}
	}
}
