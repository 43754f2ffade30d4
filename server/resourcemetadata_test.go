package server_test

import (
	"net/url"
	"testing"
)

func TestTheServiceDescribesItselfAsAResource(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for _, method := range []string{"GET", "HEAD"} {
			r := api.ask(method, "/.well-known/oauth-protected-resource", nil).is(200)
			if got := r.header.Get("Cache-Control"); got != "public, max-age=300" {
				t.Errorf("%s: Cache-Control %q", method, got)
			}
		}
		api.get("/.well-known/oauth-protected-resource").is(200).exactly(fields{
			"resource": issuer, "authorization_servers": list(issuer), "jwks_uri": issuer + "/.well-known/jwks.json",
			"bearer_methods_supported": list("header"), "dpop_signing_alg_values_supported": list("ES256", "ES384", "EdDSA", "RS256", "PS256", "Ed25519"),
			"resource_documentation": issuer + "/docs",
		})
		api.get("/.well-known/oauth-protected-resource/mcp").refused(404, "not_found")
	})
}

// A client that a proxy refuses must find the backend's metadata, not that of the service that the proxy asks.
func TestA401BehindAProxyPointsToTheMetadataOfItsAudience(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		access := w.exchange().access
		const wellKnown = "/.well-known/oauth-protected-resource"
		for audience, want := range map[string]string{
			"":                                  "",
			issuer:                              "",
			"https://mail.example":              "https://mail.example" + wellKnown,
			"https://mail.example/":             "https://mail.example" + wellKnown,
			"https://mail.example/mcp":          "https://mail.example" + wellKnown + "/mcp",
			"https://mail.example/mcp/":         "https://mail.example" + wellKnown + "/mcp/",
			"https://mail.example:8443/a%2Fb":   "https://mail.example:8443" + wellKnown + "/a%2Fb",
			"https://mail.example?tenant=7":     "https://mail.example" + wellKnown + "?tenant=7",
			"https://mail.example/mcp?tenant=7": "https://mail.example" + wellKnown + "/mcp?tenant=7",
			"http://127.0.0.1:9/mcp":            "http://127.0.0.1:9" + wellKnown + "/mcp",
			"http://mail.example/mcp":           "",
			"urn:example:mail":                  "",
			`https://mail.example/"`:            "",
			"https://mail.example/\r\n":         "",
		} {
			metadata := ""
			if want != "" {
				metadata = `, resource_metadata="` + want + `"`
			}
			query := ""
			if audience != "" {
				query = "?audience=" + url.QueryEscape(audience)
			}
			for _, path := range []string{verifyPath, authorizePath} {
				got := w.get(path+query).stopped(401, "missing_credentials").header.Get("WWW-Authenticate")
				if got != `Bearer realm="remit"`+metadata {
					t.Errorf("%s: WWW-Authenticate %q", path+query, got)
				}
				if audience == "" || audience == issuer {
					continue
				}
				got = w.get(path+query, asAgent(access)).stopped(401, "invalid_token").header.Get("WWW-Authenticate")
				if want := `Bearer realm="remit", error="invalid_token", error_description="` + w.get(path+query, asAgent(access)).detail() + `"` + metadata; got != want {
					t.Errorf("%s: WWW-Authenticate %q, want %q", path+query, got, want)
				}
			}
		}
	})
}
